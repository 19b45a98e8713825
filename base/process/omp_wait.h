/*
 * How OpenMP's threads wait for one another: they sleep, since hosts are shared and to spin takes
 * others' turns, but not at once, since most waits are over before a sleeper is up: 10,000 turns,
 * some 0.1 ms, made a small network's steps a tenth to a third quicker on an idle host and changed
 * nothing on a busy one. For libgomp, which reads both while it is loaded.
 */
#ifndef BASE_OMP_WAIT_H
#define BASE_OMP_WAIT_H

#define OMP_WAIT_VAR   "OMP_WAIT_POLICY"
#define OMP_WAIT_VALUE "passive"
#define OMP_SPIN_VAR   "GOMP_SPINCOUNT"
#define OMP_SPIN_VALUE "10000"

#endif
