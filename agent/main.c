/* det-agent: options and errors; the rest is in shell/. */
#include "agent.h"
#include "agentdoctor.h"
#include "log.h"
#include "mem.h"
#include "openfiles.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    det_cleanup(agentopts_finish) struct agentopts o = {0};
    struct det_err err = {0};
    enum log_level level = LOG_INFO;
    log_init("det-agent", LOG_INFO);
    int rc = agentopts_parse(argc, argv, &o, &err);
    if (rc == 0 && log_level_parse(o.log_level, &level) < 0)
        rc = det_fail(&err, DET_EINVAL, "--log-level %s: debug, info, warning or error",
                      o.log_level);
    if (rc < 0) {
        fprintf(stderr, "det-agent: %s\nTry 'det-agent --help'.\n", err.text);
        return 2;
    }
    if (o.help) {
        agentopts_print_help();
        return 0;
    }
    if (o.version)
        return puts("det-agent " DET_VERSION) < 0;
    if (o.doctor)
        return agentdoctor_run(&o);
    log_init("det-agent", level);
    openfiles_raise();
    rc = o.end_tasks ? agent_end_tasks(&o, &err) : agent_run(&o, &err);
    if (rc < 0)
        log_error("%s", err.text);
    return rc < 0;
}
