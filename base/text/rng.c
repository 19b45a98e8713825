#include "rng.h"

void mt19937_seed(struct mt19937 *r, uint32_t seed)
{
    r->mt[0] = seed;
    for (uint32_t i = 1; i < 624; i++)
        r->mt[i] = UINT32_C(1812433253) * (r->mt[i - 1] ^ (r->mt[i - 1] >> 30)) + i;
    r->pos = 624;
}

static void refill_state(struct mt19937 *r)
{
    for (uint32_t i = 0; i < 624; i++) {
        uint32_t y =
            (r->mt[i] & UINT32_C(0x80000000)) | (r->mt[(i + 1) % 624] & UINT32_C(0x7fffffff));
        r->mt[i] = r->mt[(i + 397) % 624] ^ (y >> 1) ^ (y & 1 ? UINT32_C(0x9908b0df) : 0);
    }
    r->pos = 0;
}

uint32_t mt19937_u32(struct mt19937 *r)
{
    if (r->pos >= 624)
        refill_state(r);
    uint32_t y = r->mt[r->pos++];
    y ^= y >> 11;
    y ^= (y << 7) & UINT32_C(0x9d2c5680);
    y ^= (y << 15) & UINT32_C(0xefc60000);
    return y ^ (y >> 18);
}

static uint64_t draw_u64(struct mt19937 *r)
{
    uint64_t hi = mt19937_u32(r);
    return hi << 32 | mt19937_u32(r);
}

uint64_t mt19937_bounded(struct mt19937 *r, uint64_t limit)
{
    if (limit == 0)
        return 0;
    uint64_t mask = UINT64_MAX >> __builtin_clzll(limit);
    for (;;) {
        uint64_t v = (limit > UINT32_MAX ? draw_u64(r) : mt19937_u32(r)) & mask;
        if (v <= limit)
            return v;
    }
}

double mt19937_double(struct mt19937 *r)
{
    uint32_t a = mt19937_u32(r) >> 5;
    uint32_t b = mt19937_u32(r) >> 6;
    return ((double)a * 67108864.0 + (double)b) / 9007199254740992.0;
}

double mt19937_uniform(struct mt19937 *r, double min, double max)
{
    return min + (max - min) * mt19937_double(r);
}

void mt19937_shuffle(struct mt19937 *r, int64_t *v, size_t n)
{
    for (size_t i = n; i-- > 1;) {
        size_t j = (size_t)mt19937_bounded(r, i);
        int64_t held = v[i];
        v[i] = v[j];
        v[j] = held;
    }
}

int64_t mt19937_torch_i64(struct mt19937 *r)
{
    return (int64_t)(draw_u64(r) & INT64_MAX);
}

void mt19937_torch_randperm(struct mt19937 *r, int64_t *perm, size_t n)
{
    for (size_t i = 0; i < n; i++)
        perm[i] = (int64_t)i;
    for (size_t i = 0; i + 1 < n; i++) {
        size_t j = i + mt19937_u32(r) % (n - i);
        int64_t held = perm[i];
        perm[i] = perm[j];
        perm[j] = held;
    }
}

void philox4x32(uint64_t key, uint64_t ctr_hi, uint64_t ctr_lo, uint32_t out[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)ctr_lo, c1 = (uint32_t)(ctr_lo >> 32);
    uint32_t c2 = (uint32_t)ctr_hi, c3 = (uint32_t)(ctr_hi >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)UINT32_C(0xd2511f53) * c0;
        uint64_t p1 = (uint64_t)UINT32_C(0xcd9e8d57) * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c0 = n0, c1 = (uint32_t)p1, c2 = n2, c3 = (uint32_t)p0;
        k0 += UINT32_C(0x9e3779b9);
        k1 += UINT32_C(0xbb67ae85);
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}
