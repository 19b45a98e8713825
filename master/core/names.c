#include "names.h"

#include "hash.h"
#include <stdlib.h>
#include <string.h>

uint64_t name_hash(const char *name)
{
    char hex[HASH_HEX_MAX];
    hash_bytes(HASH_MD5, name, strlen(name), hex);
    return strtoull(hex + 16, NULL, 16);
}

void name_uuid(const char *name, char out[UUID_STR_MAX])
{
    char hex[HASH_HEX_MAX];
    uint8_t bytes[16];
    hash_bytes(HASH_SHA256, name, strlen(name), hex);
    for (int i = 0; i < 16; i++) {
        char two[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    uuid_from_bytes(bytes, out);
}
