/* What the files of pth/ share. */
#ifndef PTH_IMPL_H
#define PTH_IMPL_H

#include "buf.h"
#include "pth.h"
#include "pth_zip.h"

#define PTH_PICKLE_MAX ((size_t)64 << 20)
#define PTH_VALUES_MAX ((size_t)8 << 20)
#define PTH_DEPTH_MAX  64

/* Kinds that live only while a pickle is read. */
enum { PTH_GLOBAL = PTH_KIND_COUNT, PTH_STORAGE };

/* The names a pickle may mention. */
enum pth_global {
    PTH_G_ORDERED_DICT,
    PTH_G_COUNTER,
    PTH_G_REBUILD_TENSOR,
    PTH_G_REBUILD_PARAMETER,
    PTH_G_SIZE,
    PTH_G_STORAGE, /* with the dtype */
    PTH_G_NP_RECONSTRUCT,
    PTH_G_NP_NDARRAY,
    PTH_G_NP_DTYPE,
    PTH_G_NP_SCALAR,
    PTH_G_ENCODE,
};

struct pth_tensor_view {
    enum pth_dtype dtype;
    int ndim;
    int64_t dims[DET_DIMS_MAX], strides[DET_DIMS_MAX]; /* in elements */
    const char *data; /* of element 0; all others are known to lie in the storage */
};

struct pth_value {
    uint8_t kind;
    bool ordered : 1; /* dict: OrderedDict */
    bool counter : 1; /* dict: Counter; only when writing, it is read as a dict */
    uint8_t color;    /* of the search for cycles */
    uint8_t height;   /* levels of lists, tuples and dicts within it; of what was read */
    uint32_t places;  /* itself and what is within it, the shared ones each time; likewise */
    union {
        int64_t i;
        double f;
        struct {
            const char *p; /* NUL-terminated */
            size_t n;
        } str;
        struct {
            struct pth_value **v; /* a dict: key, value, key, value */
            size_t n, cap;
        } seq;
        struct pth_tensor_view *tensor;
        struct {
            enum pth_global id;
            enum pth_dtype dtype;
        } global;
        struct {
            enum pth_dtype dtype;
            const char *data;
            size_t bytes;
        } storage;
    };
};

/* Memory of the document, never given back singly. */
void *pth_doc_alloc(struct pth_doc *doc, size_t bytes);
/* A new value, or NULL when there are too many (only readers need to ask). */
struct pth_value *pth_new(struct pth_doc *doc, int kind);
/* Appends to a list, tuple, or (twice) a dict. */
void pth_seq_add(struct pth_doc *doc, struct pth_value *seq, struct pth_value *v);
int64_t pth_view_numel(const struct pth_tensor_view *t);
bool pth_view_contiguous(const struct pth_tensor_view *t);
size_t pth_dtype_size(enum pth_dtype dtype);
const char *pth_dtype_storage(enum pth_dtype dtype); /* "FloatStorage" */

/* Where tensors' bytes go to and come from: entry `key` of the archive. */
struct pth_storages {
    int (*find)(void *arg, const char *key, const char **ret, size_t *ret_bytes,
                struct det_err *err);
    void *arg;
};
/* The tensors of a document in the order of their keys "0", "1", ... */
struct pth_tensor_list {
    const struct pth_tensor_view **v;
    size_t n, cap;
};
/* Appends the pickle of root; gathers its tensors (NULL: none are allowed). */
DET_MUST int pth_pickle(struct buf *out, const struct pth_value *root,
                        struct pth_tensor_list *tensors, struct det_err *err);
/* pth_save() with the archive's options; ret_hash (HASH_HEX_MAX) as pth_save_hashed() has it. */
DET_MUST int pth_save_as(const char *path, const struct pth_value *root,
                         const struct zip_writer_options *o, char *ret_hash, struct det_err *err);
/* Reads one pickle. `storages` NULL: no tensors are allowed. */
DET_MUST int pth_unpickle(const void *bytes, size_t n, const struct pth_storages *storages,
                          struct pth_doc *doc, const struct pth_value **ret, struct det_err *err);

#endif
