/* Numbers and ids that follow from names, the same in every life. Private to master/core. */
#ifndef CORE_NAMES_H
#define CORE_NAMES_H

#include "uuid.h"

uint64_t name_hash(const char *name); /* the low 64 bits of its MD5: breaks ties of placement */
void name_uuid(const char *name, char out[UUID_STR_MAX]); /* of its SHA-256 */
/* Of its XXH3-128, in a tenth of the time: for names that nobody outside chooses. */
void name_uuid_quick(const char *name, char out[UUID_STR_MAX]);

#endif
