/*
 * PyTorch's checkpoint files, written and read as data: the zip container of torch.save (stored,
 * `archive/data.pkl`, `archive/data/0`, ... `archive/version`) around a pickle, and bare pickles.
 *
 * Nothing is ever executed. The reader is a strict machine for the few opcodes and the few names
 * that torch writes (tensors, OrderedDict, Counter, torch.Size, NumPy's arrays and scalars, which
 * stay closed); any other name or opcode is DET_ECORRUPT and names it. All sizes are bounded before
 * anything is allocated, a value that contains itself is refused, and the zip's checksums are
 * verified.
 *
 * A document (struct pth_doc) owns every value made in it; values die with it. Strings are copied.
 * Tensors made by pth_tensor() borrow their memory, which must outlive the document. A value may be
 * put into several places.
 *
 * Limits: 64 MiB of pickle, 8 million values (a shared one counts at each place), depth 64, 16
 * million elements of an expanded tensor (more: DET_ETOOBIG); a file is read into memory whole.
 * Files of torch before 1.6 (no zip) are refused with that explanation.
 */
#ifndef PTH_H
#define PTH_H

#include "det/err.h"
#include "det/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pth_kind {
    PTH_NONE,
    PTH_BOOL,
    PTH_INT,
    PTH_FLOAT,
    PTH_STR,
    PTH_BYTES,
    PTH_LIST,
    PTH_TUPLE,
    PTH_DICT, /* also OrderedDict and Counter: order is kept in all */
    PTH_TENSOR,
    PTH_OPAQUE, /* something of NumPy's: there, but not readable here */
    PTH_KIND_COUNT
};

enum pth_dtype {
    PTH_F32,
    PTH_F64,
    PTH_F16,
    PTH_BF16,
    PTH_I64,
    PTH_I32,
    PTH_I16,
    PTH_I8,
    PTH_U8,
    PTH_B8,
    PTH_DTYPE_COUNT
};

struct pth_doc;
struct pth_value;

struct pth_doc *pth_doc_create(void);
void pth_doc_destroy(struct pth_doc *doc); /* NULL ok */

/* Memory that lives as long as doc; NULL when there is none (tensors are large). */
void *pth_doc_try_alloc(struct pth_doc *doc, size_t bytes);

/* ---- Making values --------------------------------------------------------------------------- */

struct pth_value *pth_none(struct pth_doc *doc);
struct pth_value *pth_bool(struct pth_doc *doc, bool v);
struct pth_value *pth_int(struct pth_doc *doc, int64_t v);
struct pth_value *pth_float(struct pth_doc *doc, double v);
struct pth_value *pth_str(struct pth_doc *doc, const char *s);
struct pth_value *pth_list(struct pth_doc *doc);
struct pth_value *pth_tuple(struct pth_doc *doc);
struct pth_value *pth_dict(struct pth_doc *doc);
struct pth_value *pth_ordered_dict(struct pth_doc *doc); /* collections.OrderedDict */
struct pth_value *pth_counter(struct pth_doc *doc);      /* collections.Counter */
/* Contiguous, C order; `data` is borrowed. */
struct pth_value *pth_tensor(struct pth_doc *doc, enum pth_dtype dtype, int ndim,
                             const int64_t *dims, const void *data);

void pth_push(struct pth_doc *doc, struct pth_value *seq, struct pth_value *v);
/* No check for an equal key. */
void pth_put(struct pth_doc *doc, struct pth_value *dict, const char *key, struct pth_value *v);
void pth_put_int(struct pth_doc *doc, struct pth_value *dict, int64_t key, struct pth_value *v);
/* In place of the value that `key` has, else as pth_put(). */
void pth_set(struct pth_doc *doc, struct pth_value *dict, const char *key, struct pth_value *v);
/* False where there is no such key. A rename keeps the place in the order. */
bool pth_remove(struct pth_value *dict, const char *key);
bool pth_rename(struct pth_doc *doc, struct pth_value *dict, const char *key, const char *to);

/* ---- Reading values: a NULL or a wrong kind gives the fallback or NULL --- */

enum pth_kind pth_kind(const struct pth_value *v); /* PTH_NONE for NULL */
const char *pth_kind_name(enum pth_kind kind);     /* "dict" */
size_t pth_len(const struct pth_value *v);         /* items of a list, tuple or dict; else 0 */
const struct pth_value *pth_at(const struct pth_value *seq, size_t i);
const struct pth_value *pth_get(const struct pth_value *dict, const char *key);
/* Item i of a dict, in order. */
const struct pth_value *pth_item(const struct pth_value *dict, size_t i,
                                 const struct pth_value **ret_key);
int64_t pth_as_int(const struct pth_value *v, int64_t fallback);         /* bool too */
double pth_as_float(const struct pth_value *v, double fallback);         /* int and bool too */
const char *pth_as_str(const struct pth_value *v, const char *fallback); /* NUL-terminated */

int pth_tensor_ndim(const struct pth_value *v);
const int64_t *pth_tensor_dims(const struct pth_value *v);
enum pth_dtype pth_tensor_dtype(const struct pth_value *v);
int64_t pth_tensor_numel(const struct pth_value *v);
/* The engine's type of the same elements, and back; *_DTYPE_COUNT for none. */
enum det_dtype pth_to_dtype(enum pth_dtype dtype);
enum pth_dtype pth_of_dtype(enum det_dtype dtype);
/* Copies the elements in C order, converted as tensor/dtype.h does. `bytes` must be numel times the
 * size of `want`; a floating type as a whole one is DET_EINVAL. */
DET_MUST int pth_tensor_read(const struct pth_value *v, enum det_dtype want, void *out,
                             size_t bytes, struct det_err *err);

/* ---- Files ----------------------------------------------------------------------------------- */

/* torch.save(root, path): created or replaced; not fsynced (the publisher does). DET_EIO names the
 * path ("No space left on device"). */
DET_MUST int pth_save(const char *path, const struct pth_value *root, struct det_err *err);
/* The same, with the file's XXH3-128 in hex (HASH_HEX_MAX of base/text/hash.h), made while it is
 * written. room: PTH_ROOM bytes, aligned to 4096, to write from; NULL: its own. */
#define PTH_ROOM ((size_t)16 << 20)
DET_MUST int pth_save_hashed(const char *path, const struct pth_value *root, void *room,
                             char *ret_hash, struct det_err *err);
/* torch.load(path). *ret_root lives in doc. DET_ENOENT, DET_EIO, DET_ECORRUPT, DET_ETOOBIG. */
DET_MUST int pth_load(const char *path, struct pth_doc *doc, const struct pth_value **ret_root,
                      struct det_err *err);
/* pickle.dump and pickle.load of plain values; a tensor in it is DET_EINVAL. */
DET_MUST int pth_save_pickle(const char *path, const struct pth_value *root, struct det_err *err);
DET_MUST int pth_load_pickle(const char *path, struct pth_doc *doc,
                             const struct pth_value **ret_root, struct det_err *err);
/* The same over bytes (tests, fuzzing). The bytes are copied. */
DET_MUST int pth_parse(const void *bytes, size_t n, struct pth_doc *doc,
                       const struct pth_value **ret_root, struct det_err *err);

#endif
