#include "reach.h"

#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AGAIN_S = 1, ATTEMPT_MS = 5000, RETRY_MS = 1000 };

/* Of several masters, all; one of them serves. */
static int try_once(struct det_err *err)
{
    struct client_options o = {.url = client_env_url(),
                               .retries = -1,
                               .retry_ms = RETRY_MS,
                               .connect_timeout_ms = ATTEMPT_MS,
                               .timeout_ms = ATTEMPT_MS,
                               .ca_file = getenv("DET_MASTER_CERT_FILE"),
                               .cert_name = getenv("DET_MASTER_CERT_NAME")};
    det_cleanup(client_destroyp) struct client *c = NULL;
    int rc = client_create(&o, &c, err);
    return rc == 0 ? client_json(c, "GET", "/api/v1/master", NULL, NULL, err) : rc;
}

int reach_main(void)
{
    struct det_err err = {0};
    while (try_once(&err) < 0) {
        err.text[strcspn(err.text, "\n")] = 0;
        if (puts(err.text) < 0 || fflush(stdout) != 0)
            return 1;
        sleep(AGAIN_S);
    }
    return 0;
}
