/*
 * Writes a state file that needs zip64, for another reader to open.
 *
 * usage: zip64 FILE BYTES COUNT FROM     a list: one tensor of BYTES zeros that ends in 1 2 3, then
 *                                        COUNT of three bytes, all of u8; sizes from FROM on as
 *                                        zip64 (0: 4 GiB)
 */
#include "hash.h"
#include "pth_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char tail[] = {1, 2, 3};

int main(int argc, char **argv)
{
    struct det_err err = {0};
    int64_t bytes = argc == 5 ? strtoll(argv[2], NULL, 10) : 0, three = 3;
    if (bytes < 3)
        return 2;
    char *p = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return 1;
    memcpy(p + bytes - 3, tail, 3);
    struct pth_doc *doc = pth_doc_create();
    struct pth_value *list = pth_list(doc);
    pth_push(doc, list, pth_tensor(doc, PTH_U8, 1, &bytes, p));
    for (long i = strtol(argv[3], NULL, 10); i > 0; i--)
        pth_push(doc, list, pth_tensor(doc, PTH_U8, 1, &three, tail));
    char hash[HASH_HEX_MAX];
    struct zip_writer_options o = {.zip64_from = strtoull(argv[4], NULL, 10)};
    int rc = pth_save_as(argv[1], list, &o, hash, &err);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.text);
    pth_doc_destroy(doc);
    return rc < 0;
}
