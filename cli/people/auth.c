/* det auth: signing in elsewhere than here. */
#include "cli.h"
#include "show.h"

#include <stdio.h>

static int link_account(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    if (cli_call(c, "POST", "/auth/link", NULL, &answer, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    fprintf(stderr, "signs a browser in once, until %s:\n",
            show_time(json_str(answer, "expiresAt", NULL)));
    printf("%s%s\n", c->master, json_str(answer, "path", ""));
    return 0;
}

static const struct verb verbs[] = {
    {"link", NULL, "", "an address that signs a browser in once, within ten minutes", NULL,
     link_account},
    {0},
};

const struct noun noun_auth = {"auth", "", NULL, "signing in with a browser", verbs};
