#include "model_exports.h"

#include "det/trial.h"
#include "fsx.h"
#include "mem.h"
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>

#define OBJECT_MAX ((size_t)1 << 30)

struct image {
    const char *p;
    size_t n;
};

/* n items of `size` at `offset`, all of them inside, or NULL. */
static const void *image_part(const struct image *f, uint64_t offset, uint64_t n, size_t size)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || offset > f->n || bytes > f->n - offset ||
        offset % 8 != 0)
        return NULL;
    return f->p + offset;
}

static bool is_trial(const ElfW(Sym) * s)
{
    return (s->st_info & 0xf) == STT_OBJECT && s->st_info >> 4 == STB_GLOBAL &&
           s->st_shndx != SHN_UNDEF && s->st_size == sizeof(struct det_trial_type);
}

static int list_symbols(const struct image *f, const ElfW(Shdr) * dynsym, const ElfW(Shdr) * names,
                        struct buf *ret, size_t *ret_n)
{
    size_t n = dynsym->sh_size / sizeof(ElfW(Sym));
    const ElfW(Sym) *syms = image_part(f, dynsym->sh_offset, n, sizeof *syms);
    if (!syms || names->sh_offset > f->n || names->sh_size > f->n - names->sh_offset)
        return DET_ECORRUPT;
    const char *text = f->p + names->sh_offset;
    for (size_t i = 0; i < n; i++) {
        if (!is_trial(&syms[i]) || syms[i].st_name >= names->sh_size)
            continue;
        size_t room = names->sh_size - syms[i].st_name;
        buf_addf(ret, "%s%.*s", (*ret_n)++ ? ", " : "", (int)strnlen(text + syms[i].st_name, room),
                 text + syms[i].st_name);
    }
    return 0;
}

static int find_exports(const struct image *f, struct buf *ret, size_t *ret_n)
{
    const ElfW(Ehdr) *h = image_part(f, 0, 1, sizeof *h);
    if (!h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return DET_ECORRUPT;
    const ElfW(Shdr) *s = image_part(f, h->e_shoff, h->e_shnum, sizeof *s);
    for (size_t i = 0; s && i < h->e_shnum; i++)
        if (s[i].sh_type == SHT_DYNSYM && s[i].sh_link < h->e_shnum)
            return list_symbols(f, &s[i], &s[s[i].sh_link], ret, ret_n);
    return DET_ECORRUPT;
}

int model_exports(const char *path, struct buf *ret, size_t *ret_n, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf bytes = BUF_INIT;
    *ret_n = 0;
    int rc = fsx_read_file(AT_FDCWD, path, OBJECT_MAX, &bytes, err);
    if (rc < 0)
        return rc;
    struct image f = {buf_str(&bytes), bytes.len};
    rc = find_exports(&f, ret, ret_n);
    return rc < 0 ? det_fail(err, rc, "%s is not a shared object of this machine", path) : 0;
}
