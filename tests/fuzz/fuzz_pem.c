/* What answers at a master's address sends certificates: the last of a chain is found by its own
 * fingerprint, and a fingerprint that was read is read as itself. */
#include "mem.h"
#include "pem.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text det_cleanup(freep) = det_strndup((const char *)data, size);
    chain(text);
    said(text);
    return 0;
}
