/* What names and addresses of the page's views may be. Pure. */
#ifndef PROTO_VIEWS_H
#define PROTO_VIEWS_H

#include "det/err.h"

enum {
    VIEW_NAME_MAX = 200,
    VIEW_ADDRESS_MAX = 8192,
    VIEWS_MAX = 200, /* of one person */
};

/* 1 to VIEW_NAME_MAX bytes, not blank, no control characters, no spaces at its ends. DET_EINVAL. */
DET_MUST int view_check_name(const char *name, struct det_err *err);
/* A path of the page with its query, so that nobody is led elsewhere: "/det/" and then no second
 * slash; printable ASCII, at most VIEW_ADDRESS_MAX bytes. DET_EINVAL. */
DET_MUST int view_check_address(const char *address, struct det_err *err);

#endif
