/* What environment.python of a configuration holds at most: refused when an experiment is made, and
 * by the agent, whatever the master. */
#ifndef PROTO_PYTHONLIMITS_H
#define PROTO_PYTHONLIMITS_H

#define PYTHON_PATH_MAX  4096  /* bytes of the interpreter's */
#define PYTHON_URL_MAX   10000 /* bytes of an index's */
#define PYTHON_URLS_MAX  100   /* further indexes */
#define PYTHON_LINES_MAX 10000 /* requirements, and constraints */

#endif
