/* Certificates as text (PEM) and their fingerprints. Whoever answers at the master's address has
 * written what is read here. */
#ifndef CLIENT_PEM_H
#define CLIENT_PEM_H

#include "det/err.h"

#define FINGERPRINT_MAX 72 /* "SHA256:", 64 hexadecimal digits and NUL */

/* The last certificate of a chain: its authority's, as a server sends its own first. NULL: there is
 * none; caller frees. */
char *pem_last(const char *chain);
/* The certificate that has this fingerprint (as fingerprint_read() gives it). NULL: none; caller
 * frees. */
char *pem_find(const char *chain, const char *fingerprint);
/* Of the first certificate in text, as det-master's log writes it. DET_EINVAL: there is none. */
DET_MUST int pem_fingerprint(const char *text, char out[FINGERPRINT_MAX], struct det_err *err);
/* "sha256:HEX", "HEX" or "sha256:AA:BB:...", in either case, in the one form that pem_fingerprint()
 * gives. */
DET_MUST int fingerprint_read(const char *text, char out[FINGERPRINT_MAX], struct det_err *err);

#endif
