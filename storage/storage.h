/*
 * Checkpoint stores: named directories (one per checkpoint, its uuid) beneath one root.
 *
 * Kinds: "shared_fs" (<host_path>/<storage_path>/<uuid>/) and "directory"
 * (<container_path>/<uuid>/). The root is opened once, and everything happens beneath its
 * descriptor; a uuid is checked before it becomes a name, so nothing that was sent can leave the
 * root.
 *
 * Publishing is write, fsync, rename, directory fsync: a checkpoint is there whole or not at all.
 *   1. storage_begin() makes <root>/.<uuid>.tmp and gives its path: write the files straight there;
 *   2. storage_publish() fsyncs every file and directory in it, renames it to <uuid>, fsyncs the
 * root.
 *   A begun one that was left (a crash) is taken away by the next storage_begin() or
 *   storage_delete() of that uuid, and by storage_sweep().
 * A full disk is DET_EIO whose text names the path and "No space left on device".
 *
 * Threads: a store may be used from several threads at once.
 */
#ifndef STORAGE_H
#define STORAGE_H

#include "det/err.h"
#include "json.h"
#include "uuid.h"
#include <stdbool.h>

#define STORAGE_UUID_MAX 64 /* letters, digits, '-' and '_'; not empty */

struct storage;

/* `config` is the experiment's checkpoint_storage; borrowed. Makes the root (0755) where it is
 * absent. DET_EUNIMPL names a kind that this build cannot serve, DET_EINVAL a wrong key. */
DET_MUST int storage_open(const json_t *config, struct storage **ret, struct det_err *err);
/* The store of this id (NULL or "": as above): nothing is made, and DET_EUNAVAIL says that another
 * store, or none, is at its place now. So does every other function here that touches it later. */
DET_MUST int storage_open_store(const json_t *config, const char *id, struct storage **ret,
                                struct det_err *err);
void storage_close(struct storage *s); /* NULL ok */

/* The root's path, for messages; borrowed. */
const char *storage_root(const struct storage *s);
/* <root>/<uuid>, where the files of a published checkpoint are; caller frees. NULL on a bad
 * uuid. */
char *storage_path(const struct storage *s, const char *uuid);
/* 0 if the checkpoint is there, DET_ENOENT naming the path if not. */
DET_MUST int storage_exists(struct storage *s, const char *uuid, struct det_err *err);

/* The directory to write into; caller frees *ret_path. DET_EEXIST if the uuid is published. */
DET_MUST int storage_begin(struct storage *s, const char *uuid, char **ret_path,
                           struct det_err *err);
DET_MUST int storage_publish(struct storage *s, const char *uuid, struct det_err *err);
/* Bytes that this process brought onto a disk by publishing; rises while it does. Any thread. */
uint64_t storage_synced_bytes(void);
/* Whether checkpoints can be written here, by beginning one with a file of a block and dropping
 * it. */
DET_MUST int storage_check(struct storage *s, struct det_err *err);
/* Drops what was begun; idempotent. */
DET_MUST int storage_abort(struct storage *s, const char *uuid, struct det_err *err);

/* A directory to read from: storage_path() itself, without a copy. Caller frees. */
DET_MUST int storage_get(struct storage *s, const char *uuid, char **ret_path, struct det_err *err);

/* Removes a checkpoint, published or begun; absent is fine. First renamed away, so a half-deleted
 * one is never seen under its name. */
DET_MUST int storage_delete(struct storage *s, const char *uuid, struct det_err *err);
/* Puts a published checkpoint aside under a hidden name of the same root, and takes it back: files
 * untouched. Quarantining an absent one is fine; restoring is DET_ENOENT when it is in neither
 * place. */
DET_MUST int storage_quarantine(struct storage *s, const char *uuid, struct det_err *err);
DET_MUST int storage_restore(struct storage *s, const char *uuid, struct det_err *err);
/* Removes it for good, wherever it is; absent is fine. */
DET_MUST int storage_purge(struct storage *s, const char *uuid, struct det_err *err);
/* Removes only the files beneath a checkpoint whose path matches `glob`: '*' and '?' as in a shell
 * but '/' is ordinary, and a leading "**" with its slash may also match nothing. */
DET_MUST int storage_delete_glob(struct storage *s, const char *uuid, const char *glob,
                                 struct det_err *err);
/* Removes what crashed writers left: begun or half-deleted ones older than age_s seconds. */
DET_MUST int storage_sweep(struct storage *s, int64_t age_s, struct det_err *err);

/* [{"uuid", "aside", "modified", "uid"}]: every checkpoint that lies in the root, those in
 * quarantine too (aside); modified in seconds, and the account it is of. New reference, or NULL. */
json_t *storage_names(struct storage *s, struct det_err *err);
/* {"resources": {path: bytes}, "metadata": its metadata.json or null} of one of them. New
 * reference, or NULL. */
json_t *storage_describe(struct storage *s, const char *uuid, bool is_aside, struct det_err *err);

/* ---- Files that grow (TensorBoard's) --------------------------------------------------------- */

/* Brings <root>/<place>, a relative path of plain names that is made where it is absent, up to
 * local_dir: new files are copied, and of a file that is longer here than there the rest is
 * appended; equal sizes are equal files. Files whose name holds `but` are passed over (NULL: none).
 * Nothing is removed. DET_EINVAL: a place that could leave the root. */
DET_MUST int storage_follow_dir(struct storage *s, const char *place, const char *local_dir,
                                const char *but, struct det_err *err);

/* Removes <root>/<place> with all that is in it; absent is fine. DET_EINVAL as above. */
DET_MUST int storage_remove_tree(struct storage *s, const char *place, struct det_err *err);

/* ---- Identity --------------------------------------------------------------------------------
 *
 * A store that is known to a cluster has a file in its root with a random id. It is made once, on
 * the master's word, and is on the disk before the master hears of it. Where it is missing the file
 * system is not mounted, and nothing is made.
 */
#define STORAGE_MARKER ".det-store"   /* {"version": 1, "id": "<uuid>"} */
#define STORAGE_ID_ENV "DET_STORE_ID" /* of a task's store; absent: not known to have one */

enum storage_sight {
    STORAGE_ABSENT,  /* no directory, no marker, the file system gives none or is read-only */
    STORAGE_PRESENT, /* its marker is there */
    STORAGE_OTHER,   /* the marker of another store is */
    STORAGE_KNOWN,   /* no marker, but a checkpoint that is known to lie in this store */
    STORAGE_HIDDEN,  /* this account may not look */
    STORAGE_SIGHT_COUNT
};
struct storage_seen {
    enum storage_sight sight;
    char id[UUID_STR_MAX]; /* of the marker that is there, "": none */
    char text[512];        /* what is wrong and where; "" when present */
};
/* What is at this path now? `id`: of the store that should be there (NULL: any). `known`: array of
 * uuids of checkpoints that lie in it, or NULL. */
void storage_look(const char *place, const char *id, const json_t *known, struct storage_seen *ret);
/* Makes the store: its root where it is absent and `known` empty, then the marker, unless one is
 * there. `id` is the marker's then. DET_ENOENT: none of the known checkpoints is there. */
DET_MUST int storage_make(const char *place, const json_t *known, char id[UUID_STR_MAX],
                          struct det_err *err);
/* Is the store still at its place? 0, or DET_EUNAVAIL with the path and what to do. Without an id
 * it always is. */
DET_MUST int storage_ready(struct storage *s, struct det_err *err);
/* The same, and may anything be written there? DET_EUNAVAIL also where it is mounted read-only. */
DET_MUST int storage_writable(struct storage *s, struct det_err *err);
/* A process of a task says that it ends for want of its store: into a file in DET_RUN_DIR, which
 * det-task reads when it has failed. */
#define STORAGE_AWAY_FILE "store_away"
void storage_note_away(const char *text);

/* {path: XXH3-128 in hex} of every file of the directory but those whose path is in `skip` (NULL or
 * an object's keys), for metadata.json under STORAGE_HASHES. New reference, or NULL with *err. */
#define STORAGE_HASHES "xxh128"
/* Of the task that wrote it: no two ever have the same, not even after a database was restored. */
#define STORAGE_TASK "det_task"
/* Of the cluster that wrote it: several may share a store. */
#define STORAGE_CLUSTER "det_cluster"
json_t *storage_hash_dir(const char *dir, const json_t *skip, struct det_err *err);
/* Checks the files of `dir` against the hashes of its metadata, STORAGE_HASHES or, of a checkpoint
 * from before these, "sha256": DET_ECORRUPT names the first file that is missing or differs. Files
 * that it does not name are allowed, and one without hashes is taken as it is. */
DET_MUST int storage_verify_dir(const char *dir, const json_t *metadata, struct det_err *err);
/* {path: size} of every file and directory (which end in '/', size 0), relative: the `resources` of
 * a checkpoint report. New reference. */
json_t *storage_list(struct storage *s, const char *uuid, struct det_err *err);

#endif
