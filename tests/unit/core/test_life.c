/* The lives of trials, allocations and experiments: the table of docs/contract/trial.md 1, row by
 * row, and the edges of 6. */
#include "world.h"

#include "searcher.h"

static struct world w;

static int setup(void **state)
{
    world_init(&w, NULL);
    world_hello(&w, "a", 2, NULL, 0);
    return 0;
}

static int teardown(void **state)
{
    world_finish(&w);
    return 0;
}

static struct core_event exp_event(enum core_event_kind kind, int64_t id)
{
    return (struct core_event){.kind = kind, .exp_id = id};
}

/* The state written last in this step. */
static enum exp_state saved_exp(void)
{
    const struct core_effect *e = NULL;
    for (size_t i = 0; world_effect(&w, CORE_SAVE_EXPERIMENT, i); i++)
        e = world_effect(&w, CORE_SAVE_EXPERIMENT, i);
    assert_non_null(e);
    return e->experiment.state;
}

static enum trial_state saved_trial(void)
{
    const struct core_effect *e = NULL;
    for (size_t i = 0; world_effect(&w, CORE_SAVE_TRIAL, i); i++)
        e = world_effect(&w, CORE_SAVE_TRIAL, i);
    assert_non_null(e);
    return e->trial.state;
}

static void test_straight_through(void **state)
{
    int64_t id = world_create(&w, "{}");
    assert_int_equal(world_count(&w, CORE_ORDER_START), 1); /* in the same step */
    const struct core_start *s = &world_effect(&w, CORE_ORDER_START, 0)->start;
    assert_int_equal(s->run_id, 1);
    assert_string_equal(world_env(&w, "A"), "b=c");
    assert_string_equal(world_env(&w, "DET_HPARAMS"), "{\"lr\":0.1}");
    assert_null(world_env(&w, "DET_LATEST_CHECKPOINT"));
    JSON_OWN task = json_parse(s->task, strlen(s->task), NULL);
    assert_string_equal(json_str(task, "entrypoint", ""), "model_def:T");
    world_run(&w, 1);
    assert_int_equal(world_trial(&w, 1).run_state, CORE_RUN_RUNNING);
    world_complete(&w, 1, 0.5);
    assert_int_equal(saved_trial(), TRIAL_COMPLETED);
    assert_int_equal(saved_exp(), EXP_COMPLETED);
    assert_true(world_effect(&w, CORE_SAVE_EXPERIMENT, 0)->experiment.progress == 1);
    assert_int_equal(world_count(&w, CORE_GC_WANTED), 1);
    struct core_exp_view v;
    assert_false(core_exp_get(w.core, id, &v));
}

static const struct core_effect *last_saved(enum core_effect_kind kind)
{
    const struct core_effect *e = NULL;
    for (size_t i = 0; world_effect(&w, kind, i); i++)
        e = world_effect(&w, kind, i);
    assert_non_null(e);
    return e;
}

/* A master whose clock is two days behind that of the one before it. */
static void test_nothing_ends_before_it_began(void **state)
{
    static const int64_t days2_us = INT64_C(2) * 86400 * 1000000;
    world_create(&w, "{\"resources\":{\"slots_per_trial\":2}}");
    int64_t first = world_create(&w, "{\"resources\":{\"slots_per_trial\":2}}");
    assert_int_equal(first, 2);
    world_run(&w, 1);
    w.behind_us = days2_us;
    world_complete(&w, 1, 0.5);
    const struct row_experiment *e = &last_saved(CORE_SAVE_EXPERIMENT)->experiment;
    assert_int_equal(e->end_us, e->start_us);
    const struct row_trial *t = &world_effect(&w, CORE_SAVE_TRIAL, 0)->trial;
    assert_int_equal(t->end_us, t->start_us);
    const struct row_allocation *a = &world_effect(&w, CORE_SAVE_ALLOCATION, 0)->allocation;
    assert_true(a->start_us > 0 && a->placed_us >= a->start_us && a->end_us == a->placed_us);
    a = &last_saved(CORE_SAVE_ALLOCATION)->allocation; /* of the one that waited for it */
    assert_int_equal(a->placed_us, a->start_us);
}

static void test_restarts_are_counted(void **state)
{
    world_create(&w, "{}");
    for (int i = 1; i <= 2; i++) {
        world_run(&w, 1);
        world_exit(&w, 1, 0, EXIT_CODE(3));
        assert_int_equal(world_trial(&w, 1).restarts, i);
        assert_int_equal(world_trial(&w, 1).run_id, i + 1);
        assert_int_equal(world_count(&w, CORE_ORDER_START), 1);
    }
    world_run(&w, 1);
    world_exit(&w, 1, 0, EXIT_CODE(3));
    assert_int_equal(saved_trial(), TRIAL_ERROR);
    assert_int_equal(saved_exp(), EXP_ERROR);
    assert_int_equal(world_effect(&w, CORE_SAVE_TRIAL, 0)->trial.restarts, 2);
}

/* The kill that follows from a failure says nothing of whose fault that was. */
static void test_a_gangs_restarts_are_counted(void **state)
{
    world_hello(&w, "b", 2, NULL, 0);
    world_create(&w, "{\"resources\":{\"slots_per_trial\":4},\"max_restarts\":1}");
    world_run(&w, 1);
    world_exit(&w, 1, 0, EXIT_CODE(3));
    world_exit(&w, 1, 1, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_int_equal(world_trial(&w, 1).restarts, 1);
    world_run(&w, 1);
    world_exit(&w, 1, 1, EXIT_CODE(3));
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_int_equal(saved_trial(), TRIAL_ERROR);
}

/* Neither is it where a lost host is why the others fail. */
static void test_a_gangs_losses_are_not_counted(void **state)
{
    world_hello(&w, "b", 2, NULL, 0);
    world_create(&w, "{\"resources\":{\"slots_per_trial\":4}}");
    world_run(&w, 1);
    world_exit(&w, 1, 0, EXIT_CODE(1));
    world_exit(&w, 1, 1, EXIT_LOST);
    assert_int_equal(world_trial(&w, 1).restarts, 0);
}

/* What the user sets goes before ours, but for what the shell will add. */
static void test_users_variables(void **state)
{
    world_create(&w, "{\"environment\":{\"environment_variables\":{\"cpu\":[\"C10D_PORT=7\","
                     "\"Q=say \\\"x\\\"\",\"DET_MASTER_ID=me\",\"none\"]}}}");
    assert_string_equal(world_env(&w, "C10D_PORT"), "7");
    assert_string_equal(world_env(&w, "Q"), "say \"x\"");
    assert_null(world_env(&w, "DET_MASTER_ID"));
    assert_string_equal(world_env(&w, "DTRAIN_SSH_PORT"), "12350");
}

/* The configuration as it is; the agent installs the list, for each run anew. */
static void test_list_of_requirements(void **state)
{
    world_create(&w, "{\"environment\":{\"python\":{\"requirements\":[\"a==1 --hash=sha256:00\"],"
                     "\"constraints\":[\"a<2\"],\"interpreter\":\"python3\"}}}");
    assert_non_null(strstr(world_env(&w, "DET_EXPERIMENT_CONFIG"), "--hash=sha256:00"));
    const char *sent = world_effect(&w, CORE_ORDER_START, 0)->start.task;
    JSON_OWN task = json_parse(sent, strlen(sent), NULL);
    assert_int_equal(json_array_size(json_path(task, "python.requirements")), 1);
    world_exit(&w, 1, 0, EXIT_CODE(1)); /* the list is there for the next run too */
    const char *again = world_effect(&w, CORE_ORDER_START, 0)->start.task;
    assert_non_null(strstr(again, "--hash=sha256:00"));
}

static void test_losses_are_not_counted(void **state)
{
    world_create(&w, "{}");
    for (int i = 1; i <= 5; i++) {
        world_wait(&w, 30000); /* after losses in a row it is held back a while */
        world_run(&w, 1);
        world_exit(&w, 1, 0, EXIT_LOST);
        assert_int_equal(world_trial(&w, 1).restarts, 0);
        assert_int_equal(world_trial(&w, 1).run_id, i + 1);
    }
}

static void test_start_failures_wait_longer(void **state)
{
    struct core_exit no = {.reason = CORE_START_FAILED, .rank = -1, .text = "no room"};
    world_create(&w, "{}");
    world_exit(&w, 1, 0, no);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 1); /* the first time: at once */
    world_exit(&w, 1, 0, no);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 0);
    assert_true(core_deadline_ms(w.core) == w.now_ms + 1000);
    world_wait(&w, 1000);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 1);
}

static void test_user_stop(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    world_exit(&w, 1, 0, EXIT_CODE(0));
    assert_int_equal(saved_trial(), TRIAL_COMPLETED);
    assert_int_equal(saved_exp(), EXP_COMPLETED);
}

static void test_invalid_hp(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    struct core_event ev = {.kind = CORE_EV_EARLY_EXIT, .trial_id = 1, .run_id = 1};
    ev.exit_early.reason = CORE_EXIT_INVALID_HP;
    ev.exit_early.text = "a loss is NaN";
    assert_int_equal(world_step(&w, ev), 0);
    ev.exit_early.text = "its script said so"; /* and ends */
    assert_int_equal(world_step(&w, ev), 0);
    world_wait(&w, 10000);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_true(world_logged(&w, "Trial 1 ended: it said that its hyperparameters are invalid: "
                                 "a loss is NaN."));
    assert_int_equal(saved_trial(), TRIAL_COMPLETED);
    assert_int_equal(saved_exp(), EXP_COMPLETED);
}

static void exit_early(enum core_early_exit reason, const char *text)
{
    struct core_event ev = {.kind = CORE_EV_EARLY_EXIT, .trial_id = 1, .run_id = 1};
    ev.exit_early.reason = reason;
    ev.exit_early.text = text;
    assert_int_equal(world_step(&w, ev), 0);
}

/* As its row has it, which outlives the master. */
static void assert_saved_exit(int reason, const char *text)
{
    JSON_OWN j = json_parse(world_effect(&w, CORE_SAVE_TRIAL, 0)->trial.core,
                            strlen(world_effect(&w, CORE_SAVE_TRIAL, 0)->trial.core), NULL);
    assert_int_equal(json_int(j, "exit_reason", -1), reason);
    assert_string_equal(json_str(j, "invalid_for", ""), text);
}

/* Reason and words of one report: of the first that has words, else of the first. */
static void test_invalid_hp_twice(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    exit_early(CORE_EXIT_INVALID_HP, NULL);
    assert_saved_exit(SEARCH_INVALID_HP, "");
    exit_early(CORE_EXIT_INIT_INVALID_HP, "");
    assert_saved_exit(SEARCH_INVALID_HP, "");
    exit_early(CORE_EXIT_INIT_INVALID_HP, "no such width");
    assert_saved_exit(SEARCH_INIT_INVALID_HP, "no such width");
    exit_early(CORE_EXIT_INVALID_HP, "its script said so");
    assert_saved_exit(SEARCH_INIT_INVALID_HP, "no such width");
}

/* A run that completed its operation and then dies is done again: its last checkpoint may be
 * missing. */
static void test_completed_but_not_in_order(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    assert_int_equal(world_op(&w, 1, 100, 0.5), 0);
    assert_int_equal(world_op(&w, 1, 100, 0.5), 0); /* a repeat */
    assert_true(world_trial(&w, 1).op_completed);
    world_exit(&w, 1, 0, EXIT_LOST);
    assert_false(world_trial(&w, 1).op_completed);
    world_run(&w, 1);
    world_complete(&w, 1, 0.5);
    assert_int_equal(saved_exp(), EXP_COMPLETED);
}

/* The repeat of a report arrives after its run was lost: the last checkpoint is missing still. */
static void test_report_after_the_end(void **state)
{
    int64_t exp = world_create(&w, "{}");
    world_run(&w, 1);
    assert_int_equal(world_op(&w, 1, 100, 0.5), 0);
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PAUSE, .exp_id = exp});
    world_exit(&w, 1, 0, EXIT_LOST);
    assert_false(world_trial(&w, 1).op_completed);
    assert_int_equal(world_op(&w, 1, 100, 0.5), DET_ESTALE);
    assert_false(world_trial(&w, 1).op_completed);
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_ACTIVATE, .exp_id = exp});
    world_run(&w, 1);
    world_complete(&w, 1, 0.5);
    assert_int_equal(saved_exp(), EXP_COMPLETED);
}

/* What crashes after it has said that it is done was done. */
static void test_crash_after_ack(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    assert_int_equal(world_op(&w, 1, 100, 0.5), 0);
    struct core_event ack = {.kind = CORE_EV_ACK_PREEMPTION,
                             .alloc_id = world_trial(&w, 1).alloc_id};
    assert_int_equal(world_step(&w, ack), 0);
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_EXITED, .signal = 11, .rank = 0});
    assert_int_equal(saved_exp(), EXP_COMPLETED);
}

static void test_pause_and_activate(void **state)
{
    int64_t id = world_create(&w, "{}");
    world_run(&w, 1);
    assert_int_equal(world_step(&w, exp_event(CORE_EV_EXP_PAUSE, id)), 0);
    assert_int_equal(saved_exp(), EXP_PAUSED);
    assert_int_equal(world_count(&w, CORE_PREEMPT), 1);
    struct core_event cp = {.kind = CORE_EV_CHECKPOINT, .trial_id = 1, .run_id = 1};
    cp.checkpoint.uuid = "u1";
    cp.checkpoint.steps = 40;
    assert_int_equal(world_step(&w, cp), 0);
    struct core_event ack = {.kind = CORE_EV_ACK_PREEMPTION,
                             .alloc_id = world_trial(&w, 1).alloc_id};
    assert_int_equal(world_step(&w, ack), 0);
    world_exit(&w, 1, 0, EXIT_CODE(0));
    assert_int_equal(world_trial(&w, 1).state, TRIAL_PAUSED);
    assert_null(world_trial(&w, 1).alloc_id);
    assert_int_equal(world_step(&w, exp_event(CORE_EV_EXP_ACTIVATE, id)), 0);
    const struct core_start *s = &world_effect(&w, CORE_ORDER_START, 0)->start;
    assert_int_equal(s->run_id, 2);
    assert_true(world_logged(&w, "run 2 is given checkpoint u1 of batch 40"));
    assert_string_equal(world_env(&w, "DET_LATEST_CHECKPOINT"), "u1");
    assert_string_equal(world_env(&w, "DET_STEPS_COMPLETED"), "40");
}

/* A pause is acknowledged before its checkpoint is taken: a crash in between uses no restart, goes
 * on from the checkpoint before, and the log says what is trained again. */
static void test_crash_before_the_checkpoint_of_a_pause(void **state)
{
    int64_t id = world_create(&w, "{\"max_restarts\": 0}");
    world_run(&w, 1);
    assert_int_equal(world_step(&w, exp_event(CORE_EV_EXP_PAUSE, id)), 0);
    struct core_event ack = {.kind = CORE_EV_ACK_PREEMPTION,
                             .alloc_id = world_trial(&w, 1).alloc_id};
    assert_int_equal(world_step(&w, ack), 0);
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_EXITED, .signal = 9, .rank = 0});
    assert_true(world_logged(&w, "by signal 9 after it was asked to stop"));
    assert_int_equal(world_trial(&w, 1).state, TRIAL_PAUSED);
    assert_int_equal(world_trial(&w, 1).restarts, 0);
    assert_int_equal(world_step(&w, exp_event(CORE_EV_EXP_ACTIVATE, id)), 0);
    assert_string_equal(world_env(&w, "DET_STEPS_COMPLETED"), "0");
}

static void test_pause_before_ready_kills(void **state)
{
    int64_t id = world_create(&w, "{}");
    assert_int_equal(world_step(&w, exp_event(CORE_EV_EXP_PAUSE, id)), 0);
    assert_int_equal(world_count(&w, CORE_PREEMPT), 0);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    world_wait(&w, 30000);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1); /* again */
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_int_equal(world_trial(&w, 1).restarts, 0);
}

static void test_slow_preemption_is_killed(void **state)
{
    int64_t id = world_create(&w, "{}");
    world_run(&w, 1);
    world_step(&w, exp_event(CORE_EV_EXP_CANCEL, id));
    world_wait(&w, 3599999);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 0);
    world_wait(&w, 1);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_int_equal(saved_exp(), EXP_CANCELED);
}

static void test_kill(void **state)
{
    int64_t id = world_create(&w, "{}");
    world_run(&w, 1);
    assert_int_equal(world_step(&w, exp_event(CORE_EV_EXP_KILL, id)), 0);
    assert_int_equal(world_step(&w, exp_event(CORE_EV_EXP_KILL, id)), 0);
    assert_int_equal(world_step(&w, exp_event(CORE_EV_EXP_CANCEL, id)), 0);
    assert_int_equal(world_step(&w, exp_event(CORE_EV_EXP_PAUSE, id)), DET_ESTATE);
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_EXITED, .signal = 9, .rank = 0});
    assert_int_equal(saved_trial(), TRIAL_CANCELED);
    assert_int_equal(saved_exp(), EXP_CANCELED);
}

/* Who asked for an end at the next boundary may lose patience. */
static void test_a_canceled_one_can_be_killed(void **state)
{
    int64_t id = world_create(&w, "{}");
    world_run(&w, 1);
    assert_int_equal(world_step(&w, exp_event(CORE_EV_EXP_CANCEL, id)), 0);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 0);
    assert_int_equal(world_step(&w, exp_event(CORE_EV_EXP_KILL, id)), 0);
    assert_int_equal(saved_exp(), EXP_STOPPING_KILLED);
    assert_int_equal(saved_trial(), TRIAL_STOPPING_KILLED);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_int_equal(saved_exp(), EXP_CANCELED);
}

static void test_stale_run_is_refused(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    world_exit(&w, 1, 0, EXIT_LOST);
    struct core_event ev = {.kind = CORE_EV_PROGRESS, .trial_id = 1, .run_id = 1};
    assert_int_equal(world_step(&w, ev), DET_ESTALE);
    ev.run_id = 2;
    ev.units = 50;
    assert_int_equal(world_step(&w, ev), 0);
    assert_true(world_reply(&w)->progress == 0.5);
}

/* The answer was lost, and the searcher has promoted the trial meanwhile. */
static void test_repeated_operation(void **state)
{
    world_create(&w, "{\"searcher\":{\"name\":\"async_halving\",\"metric\":\"m\",\"max_trials\":1,"
                     "\"num_rungs\":2,\"stop_once\":true,\"max_length\":{\"batches\":100}}}");
    world_run(&w, 1);
    assert_int_equal(world_trial(&w, 1).op_length, 25);
    assert_int_equal(world_op(&w, 1, 25, 0.5), 0);
    assert_int_equal(world_trial(&w, 1).op_length, 100);
    assert_int_equal(world_op(&w, 1, 25, 0.5), 0);
    assert_int_equal(world_count(&w, CORE_SAVE_SEARCH_EVENT), 0);
    assert_int_equal(world_op(&w, 1, 26, 0.5), DET_EINVAL);
}

static void test_wrong_operations(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    assert_int_equal(world_op(&w, 1, 99, 0.5), DET_EINVAL);
    assert_int_equal(world_op(&w, 7, 100, 0.5), DET_ENOENT);
    struct core_event ev = {.kind = CORE_EV_OP_COMPLETED, .trial_id = 1};
    JSON_OWN text = json_string("good");
    ev.op.length = 100;
    ev.op.metric = text;
    assert_int_equal(world_step(&w, ev), DET_EINVAL);
    assert_int_equal(world_op(&w, 1, 100, __builtin_nan("")), 0);
}

/* Its rows go in portions, which the shell says have gone; none of its own before. */
static void purge_exp(int64_t exp_id, bool fails)
{
    assert_int_equal(world_count(&w, CORE_PURGE), 1);
    assert_int_equal(world_effect(&w, CORE_PURGE, 0)->exp_id, exp_id);
    assert_int_equal(world_count(&w, CORE_DELETE_EXPERIMENT), 0);
    world_step(&w,
               (struct core_event){.kind = CORE_EV_EXP_PURGED,
                                   .exp_id = exp_id,
                                   .purge_failed = fails ? "a table of somebody else's" : NULL});
}

static void test_delete(void **state)
{
    JSON_OWN config = world_config("{}");
    JSON_OWN uuids = json_make("[s]", "u1");
    struct core_event ev = {.kind = CORE_EV_EXP_DELETE};
    ev.gc = (struct core_gc){
        .exp_id = 9, .owner_id = 1, .job_id = "j", .config = config, .uuids = uuids};
    assert_int_equal(world_step(&w, ev), 0);
    assert_int_equal(world_effect(&w, CORE_SAVE_EXP_STATE, 0)->exp_state.state, EXP_DELETING);
    const struct core_start s = world_effect(&w, CORE_ORDER_START, 0)->start;
    assert_string_equal(s.kind, "CHECKPOINT_GC");
    JSON_OWN task = json_parse(s.task, strlen(s.task), NULL);
    assert_int_equal(json_array_size(json_path(task, "gc.uuids")), 1);
    struct core_event ex = {.kind = CORE_EV_AGENT_EXIT, .agent_id = "a"};
    det_cleanup(freep) char *alloc = det_strdup(s.alloc_id), *container = det_strdup(s.container);
    ex.task = (struct core_task_in){
        .alloc = alloc, .container = container, .state = CORE_TASK_ENDED, .exit = EXIT_CODE(0)};
    world_step(&w, ex);
    assert_int_equal(world_step(&w, ev), 0); /* it is under way */
    assert_int_equal(world_count(&w, CORE_PURGE), 0);
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PURGED, .exp_id = 9});
    assert_int_equal(world_count(&w, CORE_DELETE_EXPERIMENT), 1);
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PURGED, .exp_id = 9});
    assert_int_equal(world_count(&w, CORE_DELETE_EXPERIMENT), 0);
    assert_int_equal(world_step(&w, ev), 0); /* once more: nothing is written for what is gone */
    assert_int_equal(world_count(&w, CORE_SAVE_ALLOCATION), 0);
}

/* Its checkpoints are still there: so are its rows, and it can be deleted again. */
static void test_delete_that_fails(void **state)
{
    JSON_OWN config = world_config("{}");
    JSON_OWN uuids = json_make("[s]", "u1");
    struct core_event ev = {.kind = CORE_EV_EXP_DELETE};
    ev.gc = (struct core_gc){
        .exp_id = 9, .owner_id = 1, .job_id = "j", .config = config, .uuids = uuids};
    assert_int_equal(world_step(&w, ev), 0);
    const struct core_start s = world_effect(&w, CORE_ORDER_START, 0)->start;
    det_cleanup(freep) char *alloc = det_strdup(s.alloc_id), *container = det_strdup(s.container);
    struct core_event ex = {.kind = CORE_EV_AGENT_EXIT, .agent_id = "a"};
    ex.task = (struct core_task_in){
        .alloc = alloc, .container = container, .state = CORE_TASK_ENDED, .exit = EXIT_CODE(1)};
    world_step(&w, ex);
    assert_int_equal(world_effect(&w, CORE_SAVE_EXP_STATE, 0)->exp_state.state, EXP_DELETE_FAILED);
    assert_non_null(strstr(world_effect(&w, CORE_SAVE_EXP_STATE, 0)->exp_state.undeleted,
                           "its checkpoints could not be deleted: "));
    assert_int_equal(world_count(&w, CORE_DELETE_EXPERIMENT), 0);
    assert_int_equal(world_step(&w, ev), 0);
    assert_null(world_effect(&w, CORE_SAVE_EXP_STATE, 0)->exp_state.undeleted);
    assert_int_equal(world_effect(&w, CORE_SAVE_EXP_STATE, 0)->exp_state.state, EXP_DELETING);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 1);
}

/* The rows of a collection that still runs are its experiment's: they go together. */
static void test_delete_waits_for_collections(void **state)
{
    JSON_OWN config = world_config("{}");
    JSON_OWN uuids = json_make("[s]", "u1");
    JSON_OWN none = json_array();
    struct core_event ev = {.kind = CORE_EV_EXP_GC};
    ev.gc = (struct core_gc){
        .exp_id = 9, .owner_id = 1, .job_id = "j", .config = config, .uuids = uuids};
    assert_int_equal(world_step(&w, ev), 0);
    const struct core_start s = world_effect(&w, CORE_ORDER_START, 0)->start;
    det_cleanup(freep) char *alloc = det_strdup(s.alloc_id), *container = det_strdup(s.container);
    ev.kind = CORE_EV_EXP_DELETE;
    ev.gc.uuids = none;
    assert_int_equal(world_step(&w, ev), 0);
    assert_int_equal(world_effect(&w, CORE_SAVE_EXP_STATE, 0)->exp_state.state, EXP_DELETING);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    assert_int_equal(world_count(&w, CORE_DELETE_EXPERIMENT), 0);
    struct core_event ex = {.kind = CORE_EV_AGENT_EXIT, .agent_id = "a"};
    ex.task = (struct core_task_in){.alloc = alloc,
                                    .container = container,
                                    .state = CORE_TASK_ENDED,
                                    .exit = {.reason = CORE_KILLED}};
    world_step(&w, ex);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 0); /* it is not made up for */
    purge_exp(9, false);
    assert_int_equal(world_count(&w, CORE_DELETE_EXPERIMENT), 1);
}

/* Without checkpoints there is nothing to do, but to look which ones there are. */
static void test_collection_that_lists(void **state)
{
    JSON_OWN config = world_config("{}");
    JSON_OWN none = json_array();
    struct core_event ev = {.kind = CORE_EV_EXP_GC};
    ev.gc = (struct core_gc){.exp_id = 9,
                             .owner_id = 1,
                             .job_id = "j",
                             .config = config,
                             .uuids = none,
                             .action = "restore"};
    assert_int_equal(world_step(&w, ev), 0);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 0);
    ev.gc.action = "list";
    assert_int_equal(world_step(&w, ev), 0);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 1);
    const char *text = world_effect(&w, CORE_ORDER_START, 0)->start.task;
    JSON_OWN task = json_parse(text, strlen(text), NULL);
    assert_string_equal(json_str(json_obj(task, "gc"), "action", ""), "list");
}

static void test_delete_withdraws_collections(void **state)
{
    struct core_alloc_view a;
    JSON_OWN config = world_config("{}");
    JSON_OWN uuids = json_make("[s]", "u1");
    JSON_OWN none = json_array();
    struct core_event off = {.kind = CORE_EV_AGENT_SET};
    off.agent_set = (struct core_agent_set){.agent_id = "a", .slot = -1};
    world_step(&w, off);
    struct core_event ev = {.kind = CORE_EV_EXP_GC};
    ev.gc = (struct core_gc){
        .exp_id = 9, .owner_id = 1, .job_id = "j", .config = config, .uuids = uuids};
    assert_int_equal(world_step(&w, ev), 0);
    assert_int_equal(world_step(&w, ev), 0);
    ev.kind = CORE_EV_EXP_DELETE;
    ev.gc.uuids = none;
    assert_int_equal(world_step(&w, ev), 0);
    purge_exp(9, false);
    assert_int_equal(world_count(&w, CORE_DELETE_EXPERIMENT), 1);
    assert_false(core_alloc_at(w.core, 0, &a));
}

/* TensorBoard's files go by a task, too. */
static void test_delete_of_files(void **state)
{
    JSON_OWN config = world_config("{}");
    JSON_OWN uuids = json_array();
    struct core_options o = core_options_default;
    o.cluster_id = "cid";
    world_finish(&w);
    world_init(&w, &o);
    world_hello(&w, "a", 1, NULL, 0);
    struct core_event ev = {.kind = CORE_EV_EXP_DELETE};
    ev.gc = (struct core_gc){.exp_id = 9,
                             .owner_id = 1,
                             .job_id = "j",
                             .config = config,
                             .uuids = uuids,
                             .has_files = true};
    assert_int_equal(world_step(&w, ev), 0);
    const struct core_start s = world_effect(&w, CORE_ORDER_START, 0)->start;
    JSON_OWN task = json_parse(s.task, strlen(s.task), NULL);
    const json_t *trees = json_path(task, "gc.trees");
    assert_string_equal(json_string_value(json_array_get(trees, 0)),
                        "cid/tensorboard/experiment/9");
}

static void test_delete_without_checkpoints(void **state)
{
    JSON_OWN config = world_config("{}");
    JSON_OWN uuids = json_array();
    struct core_event ev = {.kind = CORE_EV_EXP_DELETE};
    ev.gc = (struct core_gc){
        .exp_id = 9, .owner_id = 1, .job_id = "j", .config = config, .uuids = uuids};
    assert_int_equal(world_step(&w, ev), 0);
    purge_exp(9, true); /* what is left is left as it is, until it is asked again */
    assert_int_equal(world_effect(&w, CORE_SAVE_EXP_STATE, 0)->exp_state.state, EXP_DELETE_FAILED);
    assert_non_null(strstr(world_effect(&w, CORE_SAVE_EXP_STATE, 0)->exp_state.undeleted,
                           ": a table of somebody else's"));
    assert_int_equal(world_count(&w, CORE_DELETE_EXPERIMENT), 0);
    assert_int_equal(world_step(&w, ev), 0);
    purge_exp(9, false);
    assert_int_equal(world_count(&w, CORE_DELETE_EXPERIMENT), 1);
    ev.gc.exp_id = world_create(&w, "{}");
    assert_int_equal(world_step(&w, ev), DET_ESTATE);
}

static void test_trial_kill_goes_on(void **state)
{
    world_create(
        &w, "{\"searcher\":{\"name\":\"random\",\"max_trials\":3,\"max_concurrent_trials\":1}}");
    world_run(&w, 1);
    world_step(&w, (struct core_event){.kind = CORE_EV_TRIAL_KILL, .trial_id = 1});
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_int_equal(world_trial(&w, 2).state, TRIAL_ACTIVE);
    for (int64_t t = 2; t <= 3; t++) {
        world_run(&w, t);
        world_complete(&w, t, 1);
    }
    assert_int_equal(saved_exp(), EXP_COMPLETED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_straight_through),
        TEST(test_nothing_ends_before_it_began),
        TEST(test_users_variables),
        TEST(test_list_of_requirements),
        TEST(test_restarts_are_counted),
        TEST(test_a_gangs_restarts_are_counted),
        TEST(test_a_gangs_losses_are_not_counted),
        TEST(test_losses_are_not_counted),
        TEST(test_start_failures_wait_longer),
        TEST(test_user_stop),
        TEST(test_invalid_hp),
        TEST(test_invalid_hp_twice),
        TEST(test_report_after_the_end),
        TEST(test_crash_after_ack),
        TEST(test_crash_before_the_checkpoint_of_a_pause),
        TEST(test_completed_but_not_in_order),
        TEST(test_pause_and_activate),
        TEST(test_pause_before_ready_kills),
        TEST(test_slow_preemption_is_killed),
        TEST(test_kill),
        TEST(test_a_canceled_one_can_be_killed),
        TEST(test_stale_run_is_refused),
        TEST(test_repeated_operation),
        TEST(test_wrong_operations),
        TEST(test_delete),
        TEST(test_delete_that_fails),
        TEST(test_delete_waits_for_collections),
        TEST(test_delete_withdraws_collections),
        TEST(test_collection_that_lists),
        TEST(test_delete_of_files),
        TEST(test_delete_without_checkpoints),
        TEST(test_trial_kill_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
