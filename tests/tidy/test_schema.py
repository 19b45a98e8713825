"""Does the check of the schema see what it is for?  test_schema.py"""
import unittest

import schema

ROLES = "-- The roles of a user.\nCREATE OR REPLACE FUNCTION roles_of() RETURNS bigint LANGUAGE sql AS 'SELECT 1';\n"


class Schema(unittest.TestCase):
    def objects(self, text, where=None, uses="roles_of() roles_of()"):
        return [n for _, n, _ in schema.check_objects("a.sql", text, {} if where is None else where, uses)]

    def migration(self, text):
        return [n for _, n, _ in schema.check_migration("0099_x.sql", text, {"roles_of"})]

    def test_sound(self):
        self.assertEqual(self.objects(ROLES), [])
        self.assertEqual(self.migration("-- CREATE FUNCTION f()\nCREATE TABLE t (roles_of text);\nCREATE FUNCTION pg_temp.f() x;"), [])

    def test_twice(self):
        self.assertEqual(self.objects(ROLES + "\n" + ROLES), [5])
        self.assertEqual(self.objects(ROLES, {("FUNCTION", "roles_of"): "b.sql"}), [2])

    def test_without_a_word(self):
        self.assertEqual(self.objects(ROLES.split("\n", 1)[1]), [1])

    def test_unused(self):
        self.assertEqual(self.objects(ROLES, uses="roles_of()"), [2])

    def test_statement(self):
        code = "void db_a(struct db *db)\n{\n    db_query(db, sql_a);\n}\nvoid db_b(struct db *db)\n{\n    if (x) {\n    }\n}\n"
        lines = lambda name, text: [n for _, n, _ in schema.check_statement(f"db/sql/{name}.sql", text, code)]
        self.assertEqual(lines("a", "-- Why.\nSELECT 1\n"), [])
        self.assertEqual(lines("a", "SELECT 1\n"), [1])
        self.assertEqual(lines("b", "-- Why.\nSELECT 1\n"), [1])

    def test_defined_in_a_migration(self):
        self.assertEqual(self.migration("\nCREATE or replace FUNCTION f() x;\nALTER TRIGGER t;\nCREATE VIEW v"), [2, 3, 4])

    def test_called_in_a_migration(self):
        self.assertEqual(self.migration("UPDATE t SET x = roles_of (1);"), [1])


if __name__ == "__main__":
    unittest.main()
