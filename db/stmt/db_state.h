/* SQLSTATE: what each class and code means here. One table; nothing else compares their letters. */
#ifndef DB_STATE_H
#define DB_STATE_H

#include "db.h"

struct db_meaning {
    const char *prefix; /* of the SQLSTATE: a class or a code; "" of all others */
    enum db_state state;
    int code; /* DET_E* */
    enum db_blame blame;
};
const struct db_meaning *db_state_find(const char *sqlstate);

#endif
