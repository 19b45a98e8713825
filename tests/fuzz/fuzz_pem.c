/* What answers at a master's address sends certificates: the last of a chain is found by its own
 * fingerprint, and a fingerprint that was read is read as itself. */
#include "mem.h"
#include "pem.h"
#include "succession.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int ok)
{
    if (!ok)
        abort();
}

static void chain(const char *text)
{
    char print[FINGERPRINT_MAX], again[FINGERPRINT_MAX];
    char *last det_cleanup(freep) = pem_last(text);
    if (!last || pem_fingerprint(last, print, NULL) < 0)
        return;
    char *found det_cleanup(freep) = pem_find(text, print);
    require(found && pem_fingerprint(found, again, NULL) == 0 && !strcmp(print, again));
    require(fingerprint_read(print, again, NULL) == 0 && !strcmp(print, again));
}

static void said(const char *text)
{
    char print[FINGERPRINT_MAX], again[FINGERPRINT_MAX];
    if (fingerprint_read(text, print, NULL) == 0)
        require(fingerprint_read(print, again, NULL) == 0 && !strcmp(print, again));
}

/* Nobody is vouched for by itself. */
static void successor(const char *text)
{
    char *last det_cleanup(freep) = pem_last(text);
    char *next det_cleanup(freep) = succession_find(last ? last : "", text);
    require(!next);
    char *other det_cleanup(freep) = succession_find(text, text);
    require(!other || (last && !strcmp(other, last)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text det_cleanup(freep) = det_strndup((const char *)data, size);
    chain(text);
    said(text);
    successor(text);
    return 0;
}
