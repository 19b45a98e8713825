/*
 * Small allocations abort on exhaustion; whatever a user or a model sizes (tensors, bodies,
 * batches) must use det_try_alloc() and report DET_ENOMEM.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdlib.h>

void *det_alloc(size_t bytes);                           /* never NULL, not cleared */
void *det_zalloc(size_t bytes);                          /* never NULL, cleared */
void *det_realloc(void *p, size_t bytes);                /* never NULL (bytes > 0) */
void *det_reallocarray(void *p, size_t n, size_t bytes); /* aborts on overflow */
char *det_strdup(const char *s);                         /* NULL in, NULL out */
char *det_strndup(const char *s, size_t n);
char *det_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *det_memdup(const void *p, size_t bytes);
void *det_try_alloc(size_t bytes); /* NULL when out of memory */

/* Cleanup attribute for every local that owns: det_cleanup(freep) char *s = ... */
#define det_cleanup(fn) __attribute__((cleanup(fn)))
/* Gives ownership away: the value, leaving NULL behind. */
#define det_take(p)                                                                                \
    __extension__({                                                                                \
        __typeof__(p) take_ = (p);                                                                 \
        (p) = NULL;                                                                                \
        take_;                                                                                     \
    })
/* Defines <type>'s cleanup function <fn>p, which calls fn(*p). */
#define DET_DEFINE_CLEANUP(type, fn)                                                               \
    static inline __attribute__((unused)) void fn##p(type *p)                                      \
    {                                                                                              \
        fn(*p);                                                                                    \
    }
static inline void freep(void *p)
{
    free(*(void **)p);
}
void det_closep(int *fd); /* closes *fd if >= 0; *fd is -1 then */

#define DET_ARRAY_LEN(a)              (sizeof(a) / sizeof((a)[0]))
#define container_of(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

#endif
