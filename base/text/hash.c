#include "hash.h"

#include "mem.h"
#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

struct hash {
    EVP_MD_CTX *evp; /* one of the two */
    XXH3_state_t *xxh;
};

static const EVP_MD *digest_of_kind(enum hash_kind kind)
{
    switch (kind) {
    case HASH_MD5: return EVP_md5();
    case HASH_SHA256: return EVP_sha256();
    case HASH_SHA512: return EVP_sha512();
    case HASH_XXH128: /* none of libcrypto's: hash_create() has its own state */ break;
    }
    return NULL;
}

struct hash *hash_create(enum hash_kind kind)
{
    struct hash *h = det_zalloc(sizeof *h);
    if (kind == HASH_XXH128)
        h->xxh = XXH3_createState();
    else
        h->evp = EVP_MD_CTX_new();
    if (h->xxh ? XXH3_128bits_reset(h->xxh) != XXH_OK
               : !h->evp || EVP_DigestInit_ex(h->evp, digest_of_kind(kind), NULL) != 1)
        abort();
    return h;
}

void hash_add(struct hash *h, const void *p, size_t n)
{
    if (n && (h->xxh ? XXH3_128bits_update(h->xxh, p, n) != XXH_OK
                     : EVP_DigestUpdate(h->evp, p, n) != 1))
        abort();
}

static unsigned sum_xxh(XXH128_hash_t hash, unsigned char *sum)
{
    XXH128_canonical_t c;
    XXH128_canonicalFromHash(&c, hash);
    memcpy(sum, c.digest, sizeof c.digest);
    return sizeof c.digest;
}

static unsigned end_xxh(XXH3_state_t *xxh, unsigned char *sum)
{
    unsigned n = sum_xxh(XXH3_128bits_digest(xxh), sum);
    XXH3_freeState(xxh);
    return n;
}

static unsigned end_evp(EVP_MD_CTX *evp, unsigned char *sum)
{
    unsigned n = 0;
    if (EVP_DigestFinal_ex(evp, sum, &n) != 1)
        abort();
    EVP_MD_CTX_free(evp);
    return n;
}

static void to_hex(const unsigned char *sum, unsigned n, char hex[HASH_HEX_MAX])
{
    for (unsigned i = 0; i < n; i++) {
        hex[2 * i] = "0123456789abcdef"[sum[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[sum[i] & 15];
    }
    hex[2 * n] = '\0';
}

void hash_end(struct hash *h, char hex[HASH_HEX_MAX])
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = h->xxh ? end_xxh(h->xxh, sum) : end_evp(h->evp, sum);
    free(h);
    to_hex(sum, n, hex);
}

void hash_bytes(enum hash_kind kind, const void *p, size_t n, char hex[HASH_HEX_MAX])
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    if (kind == HASH_XXH128) { /* no state to be made */
        to_hex(sum, sum_xxh(XXH3_128bits(p, n), sum), hex);
        return;
    }
    struct hash *h = hash_create(kind);
    hash_add(h, p, n);
    hash_end(h, hex);
}

void hash_hmac(const char *key, const void *p, size_t n, char hex[HASH_HEX_MAX])
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned sum_n = 0;
    if (!HMAC(EVP_sha256(), key, (int)strlen(key), p, n, sum, &sum_n))
        abort();
    to_hex(sum, sum_n, hex);
}

int hash_fd(enum hash_kind kind, int fd, char hex[HASH_HEX_MAX], struct det_err *err)
{
    struct hash *h = hash_create(kind);
    det_cleanup(freep) char *chunk = det_alloc(1 << 16);
    ssize_t n;
    while ((n = read(fd, chunk, 1 << 16)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        hash_add(h, chunk, (size_t)n);
    }
    int saved = errno;
    hash_end(h, hex);
    return n < 0 ? det_fail_errno(err, DET_EIO, saved, "read") : 0;
}

uint64_t hash_fnv64(const void *p, size_t n)
{
    const unsigned char *b = p;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * UINT64_C(0x100000001b3);
    return h;
}

int hash_equal(const char *a, const char *b)
{
    size_t n = strlen(a);
    return n == strlen(b) && CRYPTO_memcmp(a, b, n) == 0;
}

/* One nibble at a time: the table is small enough to be written down and checked by eye. */
static uint32_t crc32c_plain(uint32_t crc, const unsigned char *p, size_t n)
{
    static const uint32_t by_nibble[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    while (n--) {
        crc ^= *p++;
        crc = crc >> 4 ^ by_nibble[crc & 15];
        crc = crc >> 4 ^ by_nibble[crc & 15];
    }
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse(uint32_t crc, const unsigned char *p,
                                                             size_t n)
{
    uint64_t c = crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        c = __builtin_ia32_crc32di(c, v);
    }
    crc = (uint32_t)c;
    while (n--)
        crc = __builtin_ia32_crc32qi(crc, *p++);
    return crc;
}
#endif

uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
    crc = ~crc;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc32c_sse(crc, p, n);
#endif
    return ~crc32c_plain(crc, p, n);
}
