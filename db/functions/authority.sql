-- The cluster's own certificate authority and those before it.

-- Puts a successor in the place of `old`, unless another one has it by now. Those of 400 days are
-- remembered (an agent's certificate lasts 365 at most), but eight at most: each client is sent them
-- all. Answers with what is true then.
CREATE OR REPLACE FUNCTION authority_replace(old text, successor text, successor_key text, vouch text)
RETURNS TABLE (certificate text, key text, vouches text, formers text) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE authority a SET certificate = successor, key = successor_key, made_at = clock_timestamp() WHERE a.certificate = old;
    IF FOUND THEN
        INSERT INTO authority_former (certificate, vouch) VALUES (old, authority_replace.vouch);
        DELETE FROM authority_former f
        WHERE f.number <= (SELECT max(number) - 8 FROM authority_former) OR f.replaced_at < now() - interval '400 days';
    END IF;
    RETURN QUERY SELECT c.certificate, c.key, c.vouches, c.formers FROM authority_chain c;
END
$$;

-- The authority with what a master sends beside its certificate: the vouches, newest first, and the
-- certificates of the former ones, oldest first.
CREATE OR REPLACE VIEW authority_chain AS
SELECT certificate, key,
       coalesce((SELECT string_agg(f.vouch, '' ORDER BY f.number DESC) FROM authority_former f), '') AS vouches,
       coalesce((SELECT string_agg(f.certificate, '' ORDER BY f.number) FROM authority_former f), '') AS formers
FROM authority;
