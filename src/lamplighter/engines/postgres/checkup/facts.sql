-- facts: all that the check-up wants to know, in one statement that works on any database from
-- version 14 on, for any user, with a store in it or without. Reads catalogues and statistics only.
-- What this user is not allowed to see comes back as NULL; `sees_all` says whether that can be.
-- For a transaction that looks names up in pg_catalog only.
--
-- in   schema       the schema of the store
-- out  one document; `facts.py` names its parts
WITH given AS (
    SELECT %(schema)s::text AS schema,
           to_regnamespace(quote_ident(%(schema)s))::oid AS namespace,
           clock_timestamp() AS now
), setting AS (
    SELECT jsonb_object_agg(s.name, jsonb_build_object('value', s.setting, 'source', s.source)) AS all
    FROM pg_settings AS s
    WHERE s.name IN (
        'fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names',
        'default_transaction_read_only', 'autovacuum', 'track_counts', 'autovacuum_freeze_max_age',
        'autovacuum_multixact_freeze_max_age', 'max_connections',
        'superuser_reserved_connections', 'reserved_connections', 'jit', 'jit_above_cost',
        'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout',
        'transaction_timeout', 'idle_session_timeout', 'default_transaction_isolation',
        'array_nulls')
), override AS (
    -- What a role or a database sets for sessions of its own, beside ours.
    SELECT coalesce(jsonb_agg(jsonb_build_object(
               'role', r.rolname, 'database', d.datname,
               'name', split_part(c.line, '=', 1),
               'value', substr(c.line, strpos(c.line, '=') + 1))), '[]') AS all
    FROM pg_db_role_setting AS s
    LEFT JOIN pg_roles AS r ON r.oid = s.setrole
    LEFT JOIN pg_database AS d ON d.oid = s.setdatabase
    CROSS JOIN LATERAL unnest(s.setconfig) AS c(line)
    WHERE s.setdatabase = 0 OR d.datname = current_database()
), standby AS (
    SELECT coalesce(jsonb_agg(jsonb_build_object(
               'name', s.application_name, 'state', s.state, 'sync', s.sync_state,
               'behind_bytes', pg_wal_lsn_diff(
                   CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_lsn() END,
                   s.flush_lsn),
               'behind_ms', extract(epoch FROM s.flush_lag) * 1000)), '[]') AS all
    FROM pg_stat_replication AS s
), holder AS (
    -- What keeps dead rows from being swept: transactions, prepared ones, and replication slots.
    SELECT coalesce(jsonb_agg(to_jsonb(h) ORDER BY h.seconds DESC), '[]') AS all
    FROM (
        SELECT 'session' AS kind, a.pid::text AS name, a.application_name AS application,
               a.usename AS "user", a.state,
               extract(epoch FROM given.now - a.xact_start) AS seconds
        FROM pg_stat_activity AS a CROSS JOIN given
        WHERE a.datname = current_database()
          AND a.pid <> pg_backend_pid()
          AND a.backend_type = 'client backend'
          AND (a.backend_xid IS NOT NULL OR a.backend_xmin IS NOT NULL)
        UNION ALL
        SELECT 'prepared transaction', x.gid, NULL, x.owner, NULL,
               extract(epoch FROM given.now - x.prepared)
        FROM pg_prepared_xacts AS x CROSS JOIN given
        WHERE x.database = current_database()
        UNION ALL
        -- A slot says how many transactions it is behind, not since when.
        SELECT 'replication slot', s.slot_name, NULL, NULL, NULL, NULL
        FROM pg_replication_slots AS s
        WHERE NOT s.active AND s.xmin IS NOT NULL
    ) AS h
), relation AS (
    SELECT coalesce(jsonb_agg(jsonb_build_object(
               'name', c.relname, 'kind', c.relkind, 'partition', c.relispartition,
               'options', coalesce(to_jsonb(c.reloptions), '[]'),
               'valid', coalesce(i.indisvalid AND i.indisready, true),
               'live', coalesce(s.n_live_tup, 0), 'dead', coalesce(s.n_dead_tup, 0),
               'bytes', CASE WHEN c.relkind IN ('r', 'i') THEN pg_relation_size(c.oid) ELSE 0 END,
               'lacks', CASE
                   WHEN c.relkind = 'S' THEN to_jsonb(array_remove(ARRAY[
                       CASE WHEN NOT has_sequence_privilege(c.oid, 'USAGE') THEN 'USAGE' END],
                       NULL))
                   WHEN c.relkind IN ('r', 'p', 'v') THEN to_jsonb(ARRAY(
                       SELECT p FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p
                       WHERE NOT has_table_privilege(c.oid, p)
                         AND (p = 'SELECT' OR (
                             c.relkind <> 'v' AND c.relname <> ALL (%(guarded)s)))))
                   ELSE '[]' END)), '[]') AS all
    FROM given
    JOIN pg_class AS c ON c.relnamespace = given.namespace
    LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
    LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid
    WHERE c.relkind IN ('r', 'p', 'v', 'i', 'I', 'S')
), routine AS (
    SELECT coalesce(jsonb_agg(jsonb_build_object(
               'name', p.proname, 'changes', p.provolatile = 'v' AND p.proname <> 'now_ms',
               'definer', p.prosecdef, 'callable', has_function_privilege(p.oid, 'EXECUTE'),
               'path', coalesce((SELECT true FROM unnest(p.proconfig) AS o
                                 WHERE o LIKE 'search\_path=%%' LIMIT 1), false),
               'everybody', (SELECT bool_or(a.grantee = 0)
                             FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a)
           )), '[]') AS all
    FROM given
    JOIN pg_proc AS p ON p.pronamespace = given.namespace
)
SELECT jsonb_build_object(
    'user', current_user,
    'database', current_database(),
    'sees_all', pg_has_role('pg_read_all_stats', 'USAGE'),
    'now_ms', extract(epoch FROM given.now) * 1000,
    'settings', setting.all,
    'overrides', override.all,
    'standbys', standby.all,
    'holders', holder.all,
    'news', pg_notification_queue_usage(),
    'connections', (SELECT sum(numbackends) FROM pg_stat_database),
    'xid_age', (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()),
    'multixact_age', (SELECT mxid_age(datminmxid) FROM pg_database
                      WHERE datname = current_database()),
    'relations', relation.all,
    'routines', routine.all
)::text
FROM given, setting, override, standby, holder, relation, routine
