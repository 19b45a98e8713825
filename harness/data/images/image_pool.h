/* Work memory of images for any number of threads: as many as ever worked at once are kept. */
#ifndef IMAGE_POOL_H
#define IMAGE_POOL_H

#include "image.h"

struct image_pool;

struct image_pool *image_pool_create(void);
void image_pool_destroy(struct image_pool *p); /* NULL ok; all must have been given back */
struct image_work *image_pool_take(struct image_pool *p);
void image_pool_give(struct image_pool *p, struct image_work *w);

#endif
