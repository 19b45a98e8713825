/*
 * det-task --reach: asks the master whether it is there, with the environment and the rights of the
 * task's ranks, until it answers; then it exits with 0. A line for each time that it did not says
 * whom it asked and why that failed.
 */
#ifndef REACH_H
#define REACH_H

int reach_main(void);

#endif
