/*
 * The page in the browser: files that the build made one object of (web/pack.py), served from
 * memory. "/", "/det" and all below it are index.html, "/assets/NAME" a file whose name has a hash
 * of what is in it. Whoever works on the page serves a folder instead (--web-dir).
 */
#ifndef API_PAGE_H
#define API_PAGE_H

#include "http.h"

struct page_file {
    const char *name, *type; /* "assets/app.ABC.js"; a Content-Type */
    const char *tag;         /* follows from the bytes */
    const unsigned char *plain;
    size_t plain_n;
    const unsigned char *packed; /* gzip */
    size_t packed_n;
};
extern const struct page_file page_files[];
extern const size_t page_files_n;

/* Whether a GET of this path is the page's, there or not. */
bool page_covers(const char *path);
/* What serves such paths (http_add_rest). */
extern const struct http_route page_route;

#endif
