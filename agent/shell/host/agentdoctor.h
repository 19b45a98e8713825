/* `det-agent doctor`: whether an agent with these options could run tasks here, and what to do. */
#ifndef AGENTDOCTOR_H
#define AGENTDOCTOR_H

#include "agentopts.h"

/* Changes nothing. Prints the findings; 0 if nothing failed, else 1: an exit status. */
int agentdoctor_run(const struct agentopts *o);

#endif
