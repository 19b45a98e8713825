/* The nearest of a list of names, for "did you mean" in errors. Levenshtein's distance, in which
 * two letters that changed places are one mistake; letters compared without case. */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include <stddef.h>

/* Insertions, deletions, substitutions and swaps of neighbours from a to b; names above 64 bytes
 * count as far (SIZE_MAX). */
size_t near_distance(const char *a, const char *b);
/* Whether b is worth proposing for a at this distance: at most a third of a's length, or 1. */
int near_enough(const char *a, size_t distance);
/* The nearest of names (borrowed), or NULL if none is near enough. */
const char *near_name(const char *word, const char *const *names, size_t n);

#endif
