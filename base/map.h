/* Two hash maps, open addressing: string keys (copied) and u64 keys, to borrowed pointers.
 * Iteration order is insertion order as long as nothing was removed; whatever leaves the program
 * sorts first. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map; /* string -> void * */
struct map *map_create(void);
void map_destroy(struct map *m);                            /* values are not freed; NULL ok */
void *map_get(const struct map *m, const char *key);        /* NULL if absent */
void *map_put(struct map *m, const char *key, void *value); /* the value it replaced */
void *map_del(struct map *m, const char *key);              /* the value taken out */
size_t map_size(const struct map *m);
/* for (size_t it = 0; map_next(m, &it, &key, &value);) ; do not change m meanwhile */
bool map_next(const struct map *m, size_t *it, const char **key, void **value);

struct imap; /* uint64_t -> void * */
struct imap *imap_create(void);
void imap_destroy(struct imap *m);
void *imap_get(const struct imap *m, uint64_t key);
void *imap_put(struct imap *m, uint64_t key, void *value);
void *imap_del(struct imap *m, uint64_t key);
size_t imap_size(const struct imap *m);
bool imap_next(const struct imap *m, size_t *it, uint64_t *key, void **value);

#endif
