/*
 * What a process reached, in a build that counts (-Db_coverage=true), is written at its exit():
 * one that ends by a signal or by _exit() writes it here, before. Elsewhere this is nothing.
 */
#ifndef DET_COUNTED_H
#define DET_COUNTED_H

#ifdef DET_COUNTED
void __gcov_dump(void);
#endif

static inline void counted_write(void)
{
#ifdef DET_COUNTED
    __gcov_dump();
#endif
}

#endif
