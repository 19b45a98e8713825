/* What the blocking and the loop's client share: options as kept, and one exchange on a curl
 * handle. */
#ifndef CLIENT_IMPL_H
#define CLIENT_IMPL_H

#include "client.h"
#include <curl/curl.h>

#define CLIENT_ADDRS_MAX 8

/* One master's URL, taken apart. */
struct client_addr {
    char *base;        /* "http://host:port" */
    char *dial;        /* the base that is dialled: of cert_name where one is given */
    char *connect_to;  /* "cert:port:host:port" or NULL */
    char *host_header; /* "Host: host:port" where dial differs from base, or NULL */
    bool is_loopback;
};
/* The options, owned. */
struct client_conf {
    struct client_options o; /* its strings are owned */
    struct client_addr addrs[CLIENT_ADDRS_MAX];
    size_t addrs_n, at; /* at: the one that is dialled */
};
/* An exchange with addrs[addr] found no master that serves: from now on the next one is dialled. */
void client_conf_failed(struct client_conf *c, size_t addr, int rc);
DET_MUST int client_conf_init(struct client_conf *c, const struct client_options *o,
                              struct det_err *err);
void client_conf_finish(struct client_conf *c);
void client_conf_set_token(struct client_conf *c, enum client_token kind, const char *token);
void client_conf_set_certificate(struct client_conf *c, const char *cert, const char *key);

/* What CURLOPT_CERTINFO has gathered. */
void client_add_certs(CURL *easy, struct buf *out);
/* client_peer_chain() */
DET_MUST int client_conf_chain(const struct client_conf *c, struct buf *out, struct det_err *err);

typedef int client_line_fn(void *arg, const char *line, size_t len, struct det_err *err);

/* One exchange. Lines go to on_line when it is set and the status is 2xx; all else into resp->body.
 */
struct client_xfer {
    CURL *easy;               /* borrowed */
    struct client_resp *resp; /* borrowed */
    size_t addr;              /* which one is dialled */
    struct curl_slist *headers, *connect_to;
    size_t answer_max;
    client_line_fn *on_line;
    void (*on_open)(void *line_arg); /* NULL: not asked for, or told */
    void *line_arg;
    struct buf partial; /* of a line */
    int64_t last_byte_ms;
    int stop;           /* non-zero result of on_line, or our own code */
    struct det_err err; /* belongs to stop */
    char curl_text[CURL_ERROR_SIZE];
};
/* Where and past which proxy easy connects; the caller frees the list once easy is done. */
struct curl_slist *client_addr_dial(const struct client_addr *addr, CURL *easy);
/* Sets easy up for req; x keeps what curl borrows. req's body is borrowed until the exchange ended.
 */
void client_xfer_begin(struct client_xfer *x, CURL *easy, const struct client_conf *conf,
                       const struct client_req *req, struct client_resp *resp);
void client_xfer_finish(struct client_xfer *x);
/* The outcome: fills resp->status; 0 or a code with "METHOD path: ..." in *err. */
DET_MUST int client_xfer_result(struct client_xfer *x, CURLcode code, const struct client_req *req,
                                struct det_err *err);
const char *client_req_method(const struct client_req *req);

#endif
