/*
 * The model definition: every file below a directory as the API's list of files. Left out: .git,
 * __pycache__, .detignore itself, and what .detignore names, in the way of .gitignore (one shell
 * pattern a line; "dir/" is a directory, a pattern with a slash is relative to the top, "**" any
 * number of directories, '#' a comment; "!pattern" keeps what an earlier line named, but nothing of
 * a directory that is left out).
 */
#ifndef CLI_PACK_H
#define CLI_PACK_H

#include "json.h"

#define PACK_BYTES_MAX ((size_t)95 << 20) /* of content; the API's limit is 96 MiB of request */

/* *ret_files: new reference to an array of {path, type, content, mtime, mode, uid, gid}. */
DET_MUST int pack_dir(const char *dir, json_t **ret_files, struct det_err *err);

#endif
