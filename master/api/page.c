#include "page.h"

#include "fsx.h"
#include "masterconf.h"
#include "shell.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define INDEX  "index.html"
#define ASSETS "/assets/"
enum { FILE_MAX = 16 << 20, NAME_MAX_BYTES = 200, TAG_MAX = 40 };

/* Nothing is loaded from elsewhere, no script or style stands in the page itself, nobody frames
 * it. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "        \
    "font-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; " \
    "frame-ancestors 'none'"
#define CHECKED  "no-cache"
#define FOR_EVER "public, max-age=31536000, immutable"

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return !strncmp(path, folder, n) && (path[n] == 0 || path[n] == '/');
}

bool page_covers(const char *path)
{
    return !strcmp(path, "/") || is_below(path, "/det") || !strncmp(path, ASSETS, strlen(ASSETS));
}

/* One of Accept-Encoding's names, unless its weight is 0. */
static bool accepts_gzip(const struct http_req *req)
{
    const char *at = http_header(req, "Accept-Encoding");
    at = at ? strcasestr(at, "gzip") : NULL;
    float weight = 1;
    return at && (sscanf(at, "%*[gzipGZIP] ; q = %f", &weight) != 1 || weight > 0);
}

static bool is_known(const struct http_req *req, const char *tag)
{
    const char *known = http_header(req, "If-None-Match");
    return known && (!strcmp(known, "*") || strstr(known, tag));
}

static void answer_file(struct http_req *req, const struct page_file *f, const char *cached)
{
    bool packed = f->packed && accepts_gzip(req);
    char tag[TAG_MAX];
    snprintf(tag, sizeof tag, "\"%s%s\"", f->tag, packed ? "-gz" : "");
    const char *const headers[] = {"Content-Security-Policy",
                                   POLICY,
                                   "X-Content-Type-Options",
                                   "nosniff",
                                   "Referrer-Policy",
                                   "no-referrer",
                                   "Cross-Origin-Opener-Policy",
                                   "same-origin",
                                   "Cross-Origin-Resource-Policy",
                                   "same-origin",
                                   "Cache-Control",
                                   cached,
                                   "Vary",
                                   "Accept-Encoding",
                                   "ETag",
                                   tag,
                                   packed ? "Content-Encoding" : NULL,
                                   "gzip",
                                   NULL};
    bool known = *f->tag && is_known(req, tag);
    struct http_answer a = {
        .status = known ? 304 : 200, .content_type = f->type, .headers = headers};
    if (known)
        http_reply_with(req, &a, NULL, 0);
    else
        http_reply_with(req, &a, packed ? f->packed : f->plain, packed ? f->packed_n : f->plain_n);
}

static const char *type_of(const char *name)
{
    static const char *const types[][2] = {{".html", "text/html; charset=utf-8"},
                                           {".js", "text/javascript; charset=utf-8"},
                                           {".css", "text/css; charset=utf-8"},
                                           {".svg", "image/svg+xml"}};
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end && i < DET_ARRAY_LEN(types); i++)
        if (!strcmp(end, types[i][0]))
            return types[i][1];
    return "text/plain; charset=utf-8";
}

/* Of the folder that is being worked on, read anew each time; its name has been looked at. */
static void serve_folder(struct http_req *req, const char *folder, const char *name)
{
    char path[4096];
    struct buf text = BUF_INIT;
    struct det_err err;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (fsx_read_file(AT_FDCWD, path, FILE_MAX, &text, &err) < 0) {
        http_fail(req, DET_ENOENT, "the page has no such file");
    } else {
        const struct page_file f = {.name = name,
                                    .type = type_of(name),
                                    .tag = "",
                                    .plain = (const unsigned char *)text.p,
                                    .plain_n = text.len};
        answer_file(req, &f, CHECKED);
    }
    buf_finish(&text);
}

/* A name of the page's own kind: one segment, no leading dot. */
static bool is_plain(const char *name)
{
    return *name != '.' && strlen(name) < NAME_MAX_BYTES &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
               strlen(name);
}

static void serve_page(struct shell *sh, struct http_req *req)
{
    bool asset = !strncmp(req->path, ASSETS, strlen(ASSETS));
    const char *name = asset ? req->path + 1 : INDEX;
    if (asset && !is_plain(req->path + strlen(ASSETS))) {
        http_fail(req, DET_ENOENT, "the page has no such file");
        return;
    }
    if (sh->conf->web_dir) {
        serve_folder(req, sh->conf->web_dir, name);
        return;
    }
    for (size_t i = 0; i < page_files_n; i++)
        if (!strcmp(page_files[i].name, name)) {
            answer_file(req, &page_files[i], asset ? FOR_EVER : CHECKED);
            return;
        }
    http_fail(req, DET_ENOENT, "the page has no such file");
}

const struct http_route page_route = {HTTP_GET, "/det/{page}", HTTP_AUTH_NONE, serve_page, 0};
