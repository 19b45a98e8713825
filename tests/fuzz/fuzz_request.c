/* Whoever has a master's address can send a certificate request: its key has one digest, however
 * often it is looked at, and what is signed has a digest. */
#include "authority.h"
#include "mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int ok)
{
    if (!ok)
        abort();
}

static const struct pem_pair *authority(void)
{
    static struct pem_pair ca;
    if (!ca.cert.len)
        require(authority_make(&ca, NULL) == 0);
    return &ca;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text det_cleanup(freep) = det_strndup((const char *)data, size);
    char key[65], again[65];
    if (authority_key_of(text, key, NULL) < 0)
        return 0;
    require(authority_key_of(text, again, NULL) == 0 && !strcmp(key, again));
    struct agent_cert c = {.name = "agent", .from_s = 0, .until_s = 1000};
    if (authority_issue_agent(authority(), text, &c, NULL) == 0)
        require(strlen(c.fingerprint) == 64 && c.pem.len > 0);
    buf_finish(&c.pem);
    return 0;
}
