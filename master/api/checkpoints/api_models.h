/* What handlers of models and of their versions share. Private to api/. */
#ifndef API_API_MODELS_H
#define API_API_MODELS_H

#include "api_util.h"
#include "db_models.h"

/* The words of a model or a version in a body; what it has not stays as it is in *ret, whose texts
 * then live as long as the request. False: answered. *ret_workspace: by name, NULL when not given;
 * its id is in *ret. */
bool model_words(struct http_req *req, const json_t *body, struct db_model_words *ret,
                 const char **ret_workspace);
/* What a list of models or versions is asked for, but MODELS_PAGE_MAX entries at most, also where
 * all are: each may have texts of REGISTRY_TEXT_MAX bytes, and a version its checkpoint's
 * configuration. False: answered. */
enum { MODELS_PAGE_MAX = 200 };
bool model_page(struct http_req *req, const struct wire_name *sorts, struct db_page *ret);
/* 404 for the model of the path. */
void model_not_found(struct http_req *req);
void model_is_archived(struct http_req *req);

#endif
