/*
 * All cases on a device, each compared, in processes of their own: a case that is wrong, crashes,
 * hangs or leaves the device in an error costs itself, and the next ones are compared by a new
 * process.
 */
#ifndef OP_COMPARE_H
#define OP_COMPARE_H

#include <stdbool.h>

enum op_compare {
    OP_COMPARE_REF,   /* with the reference */
    OP_COMPARE_TWICE, /* with the same again: the same bits */
};

/* Prints each case that failed, and why. The number of those; -1: nothing could be compared. */
int op_compare_all(enum op_compare how, const char *device, int *ret_compared);

/* What a process of op_compare_all() does, which runs this program with the arguments
 * --compare HOW DEVICE FIRST; false: these are not the arguments. */
bool op_compare_main(int argc, char **argv);

#endif
