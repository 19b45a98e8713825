/*
 * What the threads of a warp do together, on the host: each lays what it has into its place, all
 * meet, and each takes what it needs from the others' places. There are two sets of places, used by
 * turns, so that who comes late still finds what he comes for.
 */
#include <assert.h>
#include <stdlib.h>
#include <vector>

#include "cuda_runtime.h"

#define WARP        32
#define PLACE_BYTES 64

struct place {
    alignas(16) char bytes[PLACE_BYTES];
};

static place places[2][EMULATED_BLOCK_MAX];
static unsigned char turn[EMULATED_BLOCK_MAX];

/* The places of this thread's warp, valid until the thread's next exchange but one. */
static const place *exchange(const void *mine, size_t bytes)
{
    place *all = places[turn[threadIdx.x] ^= 1];
    assert(bytes <= PLACE_BYTES);
    memcpy(all[threadIdx.x].bytes, mine, bytes);
    __syncwarp();
    return all + threadIdx.x / WARP * WARP;
}

static float number_of(const place *all, unsigned lane)
{
    float r;
    memcpy(&r, all[lane].bytes, sizeof r);
    return r;
}

/* Lanes 4 g to 4 g + 3, in the order of a shuffle with 1 and one with 2. */
float cuda_quad_sum(float v)
{
    const place *all = exchange(&v, sizeof v);
    unsigned first = threadIdx.x % WARP / 4 * 4;
    return (number_of(all, first) + number_of(all, first + 1)) +
           (number_of(all, first + 2) + number_of(all, first + 3));
}

float cuda_quad_max(float v)
{
    const place *all = exchange(&v, sizeof v);
    unsigned first = threadIdx.x % WARP / 4 * 4;
    for (unsigned i = 0; i < 4; i++)
        v = number_of(all, first + i) > v ? number_of(all, first + i) : v;
    return v;
}

uint32_t cuda_join_bits(uint32_t v, int bit)
{
    const place *all = exchange(&v, sizeof v);
    uint32_t other;
    memcpy(&other, all[(threadIdx.x % WARP) ^ (unsigned)bit].bytes, sizeof other);
    return v | other;
}

/* Of matrix m of 8 x 8 (row (m & 1) * 8, column (m >> 1) * 8, or across the other way round), a
 * lane has the elements 2 t and 2 t + 1 of row g; or, turned, of column g. */
void emulated_matrices(uint32_t ret[4], const uint16_t *at, int pitch, enum emulated_order order)
{
    int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    bool turned = order == EMULATED_TURNED;
    assert((uintptr_t)at % 16 == 0 && pitch % 8 == 0);
    for (int m = 0; m < 4; m++) {
        int low = 8 * (m & 1), high = 8 * (m >> 1);
        const uint16_t *p =
            order == EMULATED_ACROSS ? at + high * pitch + low : at + low * pitch + high;
        uint32_t first = turned ? p[2 * t * pitch + g] : p[g * pitch + 2 * t];
        uint32_t second = turned ? p[(2 * t + 1) * pitch + g] : p[g * pitch + 2 * t + 1];
        ret[m] = first | second << 16;
    }
}

struct operands {
    uint32_t a[4], b[4][2];
};

static float half_of(uint32_t pair, int which, float (*number)(uint16_t))
{
    return number((uint16_t)(which ? pair >> 16 : pair));
}

/* Where PTX's mma.m16n8k16 keeps A and B: row r, column k of the one, row k, column n of the
 * other. */
static float a_of(const operands *lanes[WARP], int r, int k, float (*number)(uint16_t))
{
    return half_of(lanes[r % 8 * 4 + k % 8 / 2]->a[r / 8 + k / 8 * 2], k % 2, number);
}

static float b_of(const operands *lanes[WARP], int m, int k, int n, float (*number)(uint16_t))
{
    return half_of(lanes[n * 4 + k % 8 / 2]->b[m][k / 8], k % 2, number);
}

void emulated_mma(float (*c)[4], int n, const uint32_t a[4], const uint32_t (*b)[2],
                  float (*number)(uint16_t))
{
    operands mine = {};
    const operands *lanes[WARP];
    int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    assert(n <= 4);
    memcpy(mine.a, a, sizeof mine.a);
    memcpy(mine.b, b, (size_t)n * sizeof *b);
    const place *all = exchange(&mine, sizeof mine);
    for (int i = 0; i < WARP; i++)
        lanes[i] = (const operands *)(const void *)all[i].bytes;
    for (int m = 0; m < n; m++)
        for (int e = 0; e < 4; e++)
            for (int k = 0; k < 16; k++)
                c[m][e] += a_of(lanes, g + e / 2 * 8, k, number) *
                           b_of(lanes, m, k, 2 * t + e % 2, number);
}

/* ---- copies that go on while the thread does ---- */

struct copy {
    void *to;
    const void *from; /* NULL: zeros */
    size_t bytes;
};

static std::vector<copy> under_way[EMULATED_BLOCK_MAX];

static void land(const copy &c)
{
    c.from ? memcpy(c.to, c.from, c.bytes) : memset(c.to, 0, c.bytes);
}

/* A copy may land at once or late: every other one is early. */
static void begin(void *to, const void *from, size_t bytes, bool inside)
{
    static unsigned n;
    const copy c = {to, inside ? from : NULL, bytes};
    assert((uintptr_t)to % bytes == 0 && (uintptr_t)from % bytes == 0);
    if (n++ % 2 == 0)
        land(c);
    else
        under_way[threadIdx.x].push_back(c);
}

void cuda_copy16(void *to, const void *from, bool inside)
{
    begin(to, from, 16, inside);
}

void cuda_copy8(void *to, const void *from, bool inside)
{
    begin(to, from, 8, inside);
}

void cuda_copies_wait(void)
{
    for (const copy &c : under_way[threadIdx.x])
        land(c);
    under_way[threadIdx.x].clear();
}
