/* `det-master doctor`: whether a master with these settings could serve here, and what to do. */
#ifndef SHELL_DOCTOR_H
#define SHELL_DOCTOR_H

#include "findings.h"
#include "masterconf.h"

/* Changes nothing. Prints the findings; 0 if nothing failed, else 1: an exit status. */
int doctor_run(const struct masterconf *c);

#endif
