-- $1 trials, $2 groups, each with its names, from $3 to $4 steps, $5 points of a line.
SELECT t.ord, g.ord, n.ord,
       series_lines(t.id::integer, g.doc->>'group', $3::integer, $4::integer, n.name, $5::bigint, true)
FROM jsonb_array_elements_text($1::jsonb) WITH ORDINALITY t(id, ord),
     jsonb_array_elements($2::jsonb) WITH ORDINALITY g(doc, ord),
     LATERAL jsonb_array_elements_text(g.doc->'names') WITH ORDINALITY n(name, ord)
ORDER BY t.ord, g.ord, n.ord
