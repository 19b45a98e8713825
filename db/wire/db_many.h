/*
 * Units that stand side by side in a group and are of one kind, as one statement: beginning a
 * statement costs PostgreSQL more than a row. Private to db/.
 */
#ifndef DB_DB_MANY_H
#define DB_DB_MANY_H

#include "db_group.h"

/* Sends the units from tx on that can go together, or tx's own statements when it stands alone;
 * the first unit that was not sent. each: gets the answers to those of tx alone. */
struct db_tx *db_many_send(struct db_conn *conn, struct db_tx *tx, db_op_cb *each);

#endif
