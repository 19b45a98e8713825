/* From one authority of a master's to its next. */
#ifndef CLIENT_SUCCESSION_H
#define CLIENT_SUCCESSION_H

/*
 * The authority that a chain ends in (pem_last()), if it is another one than `kept` and kept
 * vouches for it: an authority's certificate of the very same name and key is in the chain, which
 * kept has signed, or which one has signed that kept vouches for. NULL: it is kept itself, or
 * nobody vouches; caller frees. Whoever answers has written the chain; that kept has signed a
 * server's certificate in it says nothing of the rest.
 */
char *succession_find(const char *kept, const char *chain);

#endif
