/*
 * Random numbers, all pure functions of explicit state.
 * mt19937: NumPy's legacy RandomState stream (Matsumoto & Nishimura 1998), used by the searchers
 * and the reproducible samplers. philox: counter-based Philox4x32-10 (Salmon et al. 2011), used by
 * dropout and the initialisers: the draw is a function of (key, counter), so nothing needs to be
 * saved but the counter.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct mt19937 {
    uint32_t mt[624];
    uint32_t pos; /* 0..624 */
};
void mt19937_seed(struct mt19937 *r, uint32_t seed);
uint32_t mt19937_u32(struct mt19937 *r);
/* Uniform in [0, limit] by masked rejection; limit 0 draws nothing (NumPy's legacy interval). */
uint64_t mt19937_bounded(struct mt19937 *r, uint64_t limit);
double mt19937_double(struct mt19937 *r); /* [0, 1), 53 bits */
double mt19937_uniform(struct mt19937 *r, double min, double max);
/* In-place Fisher-Yates exactly as RandomState.shuffle. */
void mt19937_shuffle(struct mt19937 *r, int64_t *v, size_t n);
/* PyTorch's generator of a CPU is the same mt19937, seeded with the low half of its seed; these are
 * its draws, compared with PyTorch 1.13. A whole int64 >= 0: torch.empty((), int64).random_(). */
int64_t mt19937_torch_i64(struct mt19937 *r);
/* perm[0..n) = torch.randperm(n). */
void mt19937_torch_randperm(struct mt19937 *r, int64_t *perm, size_t n);

void philox4x32(uint64_t key, uint64_t ctr_hi, uint64_t ctr_lo, uint32_t out[4]);

#endif
