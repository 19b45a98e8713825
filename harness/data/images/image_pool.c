#include "image_pool.h"

#include "vec.h"
#include <pthread.h>

struct image_pool {
    pthread_mutex_t lock;
    VEC(struct image_work *) idle;
};

struct image_pool *image_pool_create(void)
{
    struct image_pool *p = det_zalloc(sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void image_pool_destroy(struct image_pool *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->idle.n; i++) {
        image_work_finish(p->idle.v[i]);
        free(p->idle.v[i]);
    }
    vec_free(&p->idle);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

struct image_work *image_pool_take(struct image_pool *p)
{
    struct image_work *w = NULL;
    pthread_mutex_lock(&p->lock);
    if (p->idle.n)
        w = p->idle.v[--p->idle.n];
    pthread_mutex_unlock(&p->lock);
    return w ? w : det_zalloc(sizeof *w);
}

void image_pool_give(struct image_pool *p, struct image_work *w)
{
    pthread_mutex_lock(&p->lock);
    vec_push(&p->idle, w);
    pthread_mutex_unlock(&p->lock);
}
