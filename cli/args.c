/* What verbs share of their arguments, their questions and their answers. */
#include "cli.h"

#include "mem.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *cli_arg(const struct cli *c, size_t i)
{
    return i < c->args.n ? c->args.v[i] : NULL;
}

static int read_id(const char *text, const char *what, int64_t *ret, struct det_err *err)
{
    char *end = NULL;
    *ret = text ? strtoll(text, &end, 10) : 0;
    if (*ret <= 0 || *end)
        return det_fail(err, DET_EINVAL, "the id of %s %s is a number such as 1, not '%s'",
                        strchr("aeiou", what[0]) ? "an" : "a", what, text ? text : "");
    return 0;
}

int cli_arg_id(const struct cli *c, size_t i, const char *what, int64_t *ret, struct det_err *err)
{
    return read_id(cli_arg(c, i), what, ret, err);
}

int cli_arg_ids(const struct cli *c, size_t i, const char *what, int64_t **ret, size_t *ret_n,
                struct det_err *err)
{
    const char *text = cli_arg(c, i);
    char *list det_cleanup(freep) = det_strdup(text ? text : ""), *rest = list;
    *ret = NULL;
    *ret_n = 0;
    do {
        char *one = strsep(&rest, ",");
        *ret = det_reallocarray(*ret, *ret_n + 1, sizeof **ret);
        int rc = read_id(one, what, &(*ret)[(*ret_n)++], err);
        if (rc < 0)
            return rc;
    } while (rest);
    return 0;
}

json_t *cli_whole(const char *text)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    return end != text && !*end && !errno ? json_integer(n) : NULL;
}

json_t *cli_number(const char *text)
{
    char *end;
    double n = strtod(text, &end);
    return end != text && !*end && isfinite(n) ? json_double(n) : NULL;
}

bool cli_print_json(const struct cli *c, const json_t *answer)
{
    if (!c->json)
        return false;
    struct buf out = BUF_INIT;
    json_write_pretty(&out, answer);
    puts(buf_str(&out));
    buf_finish(&out);
    return true;
}

bool cli_confirmed(const char *question, const char *done, struct det_err *err)
{
    char answer[16] = "";
    fprintf(stderr, "%s [y/N] ", question);
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return true;
    det_fail(err, DET_ECANCELED, "nothing was %s; --yes does it without asking", done);
    return false;
}
