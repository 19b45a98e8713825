/*
 * det-task --serve: one process per agent, already linked and with its libraries initialised, that
 * forks a det-task for each order. A det-task started from nothing spends 10 ms on loading
 * libraries, a forked one well under 1 ms.
 *
 * Orders come as packets on standard input (SOCK_SEQPACKET): SERVE_RUN or SERVE_RECOVER, then the
 * task's directory; the socket that the agent listens at for it rides along (SCM_RIGHTS). Nothing
 * is answered: a task that does not come to be closes that socket, which the agent notices. The end
 * of input ends this process and no task: each is a session of its own.
 */
#ifndef AGENT_TASK_SERVE_H
#define AGENT_TASK_SERVE_H

#define SERVE_RUN     'r'
#define SERVE_RECOVER 'c'

/* argv's memory becomes the title of each task; argv[2] is there to give it room. Returns in every
 * child too, with that task's exit status. */
int serve_main(int argc, char **argv);

#endif
