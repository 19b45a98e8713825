/* The system library's <archive.h>, whose name base/archive.h hides on the include path. Include
 * this with <>: found through the path, it can name the next one on it. */
#ifndef BASE_LIBARCHIVE_H
#define BASE_LIBARCHIVE_H

#include_next <archive.h>
#include <archive_entry.h>

#endif
