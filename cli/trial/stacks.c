/* det trial stacks: where a running trial's ranks are, as its log has it a moment later. */
#include "agentlink.h"
#include "cli.h"
#include "clk.h"
#include "logs.h"
#include "trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 30000, LOOK_MS = 100 };

struct reading {
    int64_t last; /* id of the last line that was read */
    const json_t *agents;
    size_t ended; /* agents that have said that all is there */
};

static bool is_end(const struct reading *r, const char *text)
{
    for (size_t i = 0; i < json_array_size(r->agents); i++) {
        char end[256];
        snprintf(end, sizeof end, LINK_STACKS_END, json_string_value(json_array_get(r->agents, i)));
        if (strncmp(text, end, strlen(end)) == 0)
            return true;
    }
    return false;
}

static int on_line(void *arg, json_t *line)
{
    struct reading *r = arg;
    const char *message = json_str(line, "message", "");
    r->last = strtoll(json_str(line, "id", "0"), NULL, 10);
    if (is_end(r, json_str(line, "log", message)))
        r->ended++;
    else
        fputs(message, stdout);
    fflush(stdout);
    return 0;
}

static int read_on(struct cli *c, int64_t id, struct reading *r, struct det_err *err)
{
    int64_t by_ms = clk_mono_ms() + WAIT_MS;
    while (r->ended < json_array_size(r->agents)) {
        det_cleanup(freep) char *path =
            det_asprintf("/trials/%" PRId64 "/logs?beyondId=%" PRId64, id, r->last);
        if (cli_stream(c, path, on_line, r, err) < 0)
            return CLI_FAILED;
        if (r->ended < json_array_size(r->agents) && clk_mono_ms() > by_ms) {
            det_fail(err, DET_ETIMEOUT,
                     "no answer from all of its agents for %d s; what they say "
                     "later is in  det trial logs %" PRId64,
                     WAIT_MS / 1000, id);
            return CLI_FAILED;
        }
        usleep(LOOK_MS * 1000);
    }
    return 0;
}

int trial_stacks(struct cli *c, struct det_err *err)
{
    int64_t id;
    JSON_OWN answer = NULL;
    if (cli_arg_id(c, 0, "trial", &id, err) < 0)
        return CLI_USAGE;
    JSON_OWN last = logs_last(c, id, 1);
    det_cleanup(freep) char *path = det_asprintf("/trials/%" PRId64 "/stacks", id);
    if (cli_call(c, "POST", path, NULL, &answer, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    const char *from = json_str(json_array_get(last, 0), "id", "0");
    struct reading r = {.last = strtoll(from, NULL, 10), .agents = json_arr(answer, "agents")};
    return read_on(c, id, &r, err);
}
