/* Who answers, before anything is said. */
#include "client_impl.h"

#include <string.h>

#define CERT_KEY "Cert:"

void client_add_certs(CURL *easy, struct buf *out)
{
    struct curl_certinfo *all = NULL;
    curl_easy_getinfo(easy, CURLINFO_CERTINFO, &all);
    for (int i = 0; all && i < all->num_of_certs; i++)
        for (const struct curl_slist *line = all->certinfo[i]; line; line = line->next)
            if (strncmp(line->data, CERT_KEY, strlen(CERT_KEY)) == 0)
                buf_addf(out, "%s\n", line->data + strlen(CERT_KEY));
}

int client_conf_chain(const struct client_conf *c, struct buf *out, struct det_err *err)
{
    const struct client_addr *addr = &c->addrs[c->at];
    char text[CURL_ERROR_SIZE] = "";
    CURL *easy = curl_easy_init();
    if (!easy)
        return det_fail(err, DET_ENOMEM, "libcurl cannot start");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)c->o.connect_timeout_ms);
    curl_easy_setopt(easy, CURLOPT_URL, addr->dial);
    curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(easy, CURLOPT_CERTINFO, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, text);
    struct curl_slist *connect_to = client_addr_dial(addr, easy);
    CURLcode code = curl_easy_perform(easy);
    if (code == CURLE_OK)
        client_add_certs(easy, out);
    curl_easy_cleanup(easy);
    curl_slist_free_all(connect_to);
    if (code != CURLE_OK)
        return det_fail(err, DET_EUNAVAIL, "%s: %s", addr->base,
                        text[0] ? text : curl_easy_strerror(code));
    return out->len ? 0 : det_fail(err, DET_EAUTH, "%s sent no certificate", addr->base);
}
