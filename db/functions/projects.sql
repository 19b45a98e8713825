-- Projects.

-- project.v1.Project. Projects of an archived workspace read as archived.
CREATE OR REPLACE FUNCTION project_doc(p projects) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT jsonb_build_object('id', p.id, 'name', p.name, 'workspaceId', p.workspace_id, 'description', p.description,
        'lastExperimentStartedAt', (SELECT api_time(max(e.start_time)) FROM experiments e WHERE e.project_id = p.id),
        'notes', '[]'::jsonb, 'numExperiments', n.all_of_it,
        'numActiveExperiments', n.active,
        'archived', p.archived OR w.archived, 'username', u.username, 'immutable', p.id = 1, 'userId', p.user_id,
        'workspaceName', w.name, 'state', 'WORKSPACE_STATE_UNSPECIFIED', 'errorMessage', '')
    FROM users u, workspaces w, (SELECT coalesce(sum(c.n), 0)::bigint all_of_it,
                                        coalesce(sum(c.n) FILTER (WHERE c.state = 'ACTIVE'), 0)::bigint active
                                 FROM experiment_counts c WHERE c.project_id = p.id) n
    WHERE u.id = p.user_id AND w.id = p.workspace_id);
END $$;

-- An experiment whose project was deleted in the moment in which it was made is refused: it may stand in no other, whose
-- right nobody was asked for. A leader lets the two not meet (origins.h), as long as it hears how the deletion ended.
CREATE OR REPLACE FUNCTION place_experiment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM projects WHERE id = NEW.project_id FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE foreign_key_violation USING MESSAGE = format('project %s not found: it has been deleted', NEW.project_id);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER experiments_placed BEFORE INSERT ON experiments FOR EACH ROW EXECUTE FUNCTION place_experiment();
