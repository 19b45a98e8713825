"""Every public name of the package, and the parameters of what can be called: names, order, kinds and defaults."""
import enum
import importlib
import inspect
import os
import pickle
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_ins"))  # of what Debian does not have

TABLE = """
determined
  __version__ LOG_FORMAT errors core experimental pytorch util launch
  get_cluster_info()
  import_from_path(path)
  InvalidHP(msg='...')
  ClusterInfo(master_url, cluster_id, agent_id, slot_ids, task_id, allocation_id, session_token, task_type, master_cert_name=None, master_cert_file=None, latest_checkpoint=None, trial_info=None, rendezvous_info=None, resources_info=None)
  ClusterInfo.latest_checkpoint ClusterInfo.user_data ClusterInfo.trial ClusterInfo.container_addrs ClusterInfo.container_slot_counts ClusterInfo.container_rank ClusterInfo.gpu_uuids
  RendezvousInfo(container_addrs, container_rank, container_slot_counts)
  ResourcesInfo(gpu_uuids)
  TrialInfo(trial_id, experiment_id, trial_seed, hparams, config, steps_completed, trial_run_id, debug, inter_node_network_interface=None)
  LegacyTrial TrialContext TrialController EnvContext ExperimentConfig
determined.errors
  InvalidExperimentException InvalidModelException CheckpointNotFound CheckpointStateException WorkerError WorkerFinishedGracefully
  SkipWorkloadException StopLoadingImplementation EnterpriseOnlyError NoDirectStorageAccess ProxiedDownloadFailed MultipleDownloadsFailed
  InvalidDataTypeException(typ, message)
  InvalidConfigurationException(config, message)
  InternalException(message)
  InvalidCheckpointException()
determined.common.check
  CheckFailedError
determined.util
  sample_hparams(ranges)
determined.pytorch
  TorchData samplers
  init(*, hparams=None, exp_conf=None, distributed=None, aggregation_frequency=1, enable_tensorboard_logging=True)
  TrainUnit(value)
  Epoch(value)
  Batch(value)
  Trainer(trial, context)
  Trainer.configure_profiler(self, sync_timings=True, enabled=False, begin_on_batch=0, end_after_batch=None)
  Trainer.fit(self, checkpoint_period=None, validation_period=None, max_length=None, reporting_period=Batch(100), checkpoint_policy='best', latest_checkpoint=None, step_zero_validation=False, test_mode=False)
  PyTorchTrial(context)
  PyTorchTrial.trial_controller_class PyTorchTrial.trial_context_class
  PyTorchTrial.train_batch(self, batch, epoch_idx, batch_idx)
  PyTorchTrial.build_training_data_loader(self)
  PyTorchTrial.build_validation_data_loader(self)
  PyTorchTrial.evaluate_batch(self, batch, batch_idx)
  PyTorchTrial.evaluate_full_dataset(self, data_loader)
  PyTorchTrial.evaluation_reducer(self)
  PyTorchTrial.build_callbacks(self)
  PyTorchTrial.get_batch_length(self, batch)
  PyTorchTrialContext(core_context, trial_seed, hparams, slots_per_trial, num_gpus, exp_conf, aggregation_frequency, steps_completed, managed_training, debug_enabled, enable_tensorboard_logging=True)
  PyTorchTrialContext.from_config(config)
  PyTorchTrialContext.env
  PyTorchTrialContext.get_hparams(self)
  PyTorchTrialContext.get_hparam(self, name)
  PyTorchTrialContext.get_experiment_config(self)
  PyTorchTrialContext.get_data_config(self)
  PyTorchTrialContext.get_global_batch_size(self)
  PyTorchTrialContext.get_per_slot_batch_size(self)
  PyTorchTrialContext.get_experiment_id(self)
  PyTorchTrialContext.get_trial_id(self)
  PyTorchTrialContext.get_trial_seed(self)
  PyTorchTrialContext.get_initial_batch(self)
  PyTorchTrialContext.is_epoch_start(self)
  PyTorchTrialContext.is_epoch_end(self)
  PyTorchTrialContext.current_train_epoch(self)
  PyTorchTrialContext.current_train_batch(self)
  PyTorchTrialContext.get_tensorboard_path(self)
  PyTorchTrialContext.get_tensorboard_writer(self)
  PyTorchTrialContext.get_enable_tensorboard_logging(self)
  PyTorchTrialContext.set_enable_tensorboard_logging(self, enable_tensorboard_logging)
  PyTorchTrialContext.get_stop_requested(self)
  PyTorchTrialContext.set_stop_requested(self, stop_requested)
  PyTorchTrialContext.wrap_model(self, model)
  PyTorchTrialContext.wrap_optimizer(self, optimizer, backward_passes_per_step=1, fp16_compression=None, average_aggregated_gradients=None)
  PyTorchTrialContext.wrap_lr_scheduler(self, lr_scheduler, step_mode, frequency=1)
  PyTorchTrialContext.wrap_scaler(self, scaler)
  PyTorchTrialContext.wrap_reducer(self, reducer, name=None, for_training=True, for_validation=True)
  PyTorchTrialContext.reset_reducers(self)
  PyTorchTrialContext.reduce_metrics(self, for_training)
  PyTorchTrialContext.run_cross_slot_reduction(self, reducables, gathered)
  PyTorchTrialContext.configure_apex_amp(self, models, optimizers, enabled=True, opt_level='O1', cast_model_type=None, patch_torch_functions=None, keep_batchnorm_fp32=None, master_weights=None, loss_scale=None, cast_model_outputs=None, num_losses=1, verbosity=1, min_loss_scale=None, max_loss_scale=16777216.0)
  PyTorchTrialContext.autocast_forward_pass(self, module)
  PyTorchTrialContext.backward(self, loss, gradient=None, retain_graph=False, create_graph=False)
  PyTorchTrialContext.step_optimizer(self, optimizer, clip_grads=None, auto_zero_grads=True, scaler=None)
  PyTorchTrialContext.to_device(self, data)
  PyTorchTrialContext.set_profiler(self, *args, **kwargs)
  PyTorchExperimentalContext.use_amp(self)
  PyTorchExperimentalContext.disable_dataset_reproducibility_checks(self)
  PyTorchExperimentalContext.disable_auto_to_device(self)
  PyTorchExperimentalContext.wrap_reducer
  CheckpointLoadContext(hparams=None, exp_conf=None)
  load_trial_from_checkpoint_path(path, trial_class=None, trial_kwargs=None, torch_load_kwargs=None, **kwargs)
  LRScheduler(scheduler, step_mode, frequency=1)
  LRScheduler.StepMode{STEP_EVERY_EPOCH=1, STEP_EVERY_BATCH=2, MANUAL_STEP=3, STEP_EVERY_OPTIMIZER_STEP=4}
  LRScheduler.step(self, *args, **kwargs)
  LRScheduler.get_last_lr(self)
  LRScheduler.state_dict(self)
  LRScheduler.load_state_dict(self, state_dict)
  Reducer{AVG=1, SUM=2, MAX=3, MIN=4}
  MetricReducer.reset(self)
  MetricReducer.per_slot_reduce(self)
  MetricReducer.cross_slot_reduce(self, per_slot_metrics)
  PyTorchCallback.on_trial_startup(self, first_batch_idx, checkpoint_uuid)
  PyTorchCallback.on_trial_shutdown(self)
  PyTorchCallback.on_training_start(self)
  PyTorchCallback.on_training_epoch_start(self, epoch_idx)
  PyTorchCallback.on_training_epoch_end(self, epoch_idx)
  PyTorchCallback.on_training_workload_end(self, avg_metrics, batch_metrics)
  PyTorchCallback.on_validation_start(self)
  PyTorchCallback.on_validation_epoch_start(self)
  PyTorchCallback.on_validation_epoch_end(self, outputs)
  PyTorchCallback.on_validation_end(self, metrics)
  PyTorchCallback.on_checkpoint_load_start(self, checkpoint)
  PyTorchCallback.on_checkpoint_save_start(self, checkpoint)
  PyTorchCallback.on_checkpoint_end(self, checkpoint_dir)
  PyTorchCallback.on_checkpoint_write_end(self, checkpoint_dir)
  PyTorchCallback.on_checkpoint_upload_end(self, uuid)
  PyTorchCallback.state_dict(self)
  PyTorchCallback.load_state_dict(self, state_dict)
  DataLoader(dataset, batch_size=1, shuffle=False, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False)
  DataLoader.get_data_loader(self, repeat=False, skip=0, num_replicas=1, rank=0)
  DataLoader.__len__(self)
  DataLoader.__iter__(self)
  adapt_batch_sampler(batch_sampler, repeat=False, skip=0, num_replicas=1, rank=0)
  data_length(data)
  to_device(data, device, warned_types=None)
determined.pytorch.samplers
  RepeatSampler(sampler)
  RepeatBatchSampler(batch_sampler)
  DistributedSampler(sampler, num_workers, rank)
  DistributedBatchSampler(batch_sampler, num_workers, rank)
  SkipSampler(sampler, skip)
  SkipBatchSampler(batch_sampler, skip)
  ReproducibleShuffleSampler(sampler, seed)
  ReproducibleShuffleBatchSampler(batch_sampler, seed)
determined.core
  DummyDistributedContext DummyCheckpointContext DummyTrainContext DummySearcherContext DummySearcherOperation DummyPreemptContext
  ExperimentalCoreContext DummyExperimentalCoreContext
  TensorboardMode{AUTO='AUTO', MANUAL='MANUAL'}
  DownloadMode{LocalWorkersShareDownload='LOCAL_WORKERS_SHARE_DOWNLOAD', NoSharedDownload='NO_SHARED_DOWNLOAD'}
  PreemptMode{WorkersAskChief='WORKERS_ASK_CHIEF', ChiefOnly='CHIEF_ONLY', WorkersAskMaster='WORKERS_ASK_MASTER'}
  SearcherMode{WorkersAskChief='WORKERS_ASK_CHIEF', ChiefOnly='CHEIF_ONLY'}
  Unit{EPOCHS='EPOCHS', RECORDS='RECORDS', BATCHES='BATCHES'}
  EarlyExitReason{INVALID_HP='EXITED_REASON_INVALID_HP', USER_REQUESTED_STOP='EXITED_REASON_USER_REQUESTED_STOP'}
  init(*, distributed=None, checkpoint_storage=None, preempt_mode=PreemptMode.WorkersAskChief, tensorboard_mode=TensorboardMode.AUTO)
  Context.start(self)
  Context.close Context.__enter__ Context.__exit__
  DistributedContext(*, rank, size, local_rank, local_size, cross_rank, cross_size, chief_ip=None, pub_port=12360, pull_port=12376, port_offset=0, force_tcp=False)
  DistributedContext.from_horovod(hvd, chief_ip=None)
  DistributedContext.from_deepspeed(chief_ip=None)
  DistributedContext.from_torch_distributed(chief_ip=None)
  DistributedContext.get_rank(self)
  DistributedContext.get_local_rank(self)
  DistributedContext.get_size(self)
  DistributedContext.get_num_agents(self)
  DistributedContext.close(self)
  DistributedContext.gather(self, stuff)
  DistributedContext.gather_local(self, stuff)
  DistributedContext.allgather(self, stuff)
  DistributedContext.allgather_local(self, stuff)
  DistributedContext.broadcast(self, stuff)
  DistributedContext.broadcast_local(self, stuff=None)
  PreemptContext.start(self)
  PreemptContext.should_preempt(self, auto_ack=True)
  PreemptContext.acknowledge_preemption_signal(self)
  SearcherContext.operations(self, searcher_mode=SearcherMode.WorkersAskChief, auto_ack=True)
  SearcherContext.acknowledge_out_of_ops(self)
  SearcherContext.get_configured_units(self)
  SearcherOperation.length
  SearcherOperation.report_progress(self, length)
  SearcherOperation.report_completed(self, searcher_metric)
  TrainContext.set_status(self, status)
  TrainContext.report_training_metrics(self, steps_completed, metrics, batch_metrics=None)
  TrainContext.report_validation_metrics(self, steps_completed, metrics)
  TrainContext.report_metrics(self, group, steps_completed, metrics)
  TrainContext.get_tensorboard_path(self)
  TrainContext.upload_tensorboard_files TrainContext.get_experiment_best_validation
  TrainContext.report_early_exit(self, reason)
  CheckpointContext.upload(self, ckpt_dir, metadata=None, *, shard=False, selector=None)
  CheckpointContext.store_path(self, metadata=None, *, shard=False)
  CheckpointContext.download(self, storage_id, ckpt_dir, download_mode=DownloadMode.LocalWorkersShareDownload, *, selector=None)
  CheckpointContext.restore_path(self, storage_id, download_mode=DownloadMode.LocalWorkersShareDownload, *, selector=None)
  CheckpointContext.get_metadata(self, storage_id)
  CheckpointContext.delete(self, storage_id)
determined.experimental
  client Determined Experiment ExperimentReference Trial TrialReference Checkpoint Model ModelVersion ModelSortBy OrderBy
  Project ModelOrderBy TrialOrderBy TrialSortBy
  test_one_batch(trial_class, config=None)
determined.common.experimental
  Checkpoint Determined Experiment ExperimentReference Model ModelVersion Trial TrialReference User Workspace Project OrderBy ModelOrderBy
determined.common.experimental.trial
  Trial TrialReference TrialSortBy TrialOrderBy TrialState
determined.common.experimental.resource_pool
  ResourcePool
determined.experimental.client
  APIException NotFoundException UnauthenticatedException ExperimentReference TrialReference CheckpointState CheckpointTrainingMetadata ExperimentState TrialState TrialMetrics
  Determined(master=None, user=None, password=None, cert_path=None, cert_name=None, noverify=False)
  login(master=None, user=None, password=None, cert_path=None, cert_name=None, noverify=False)
  logout()
  create_experiment(config, model_dir=None, includes=None, parent_id=None, project_id=None, template=None)
  get_experiment(experiment_id)
  list_experiments(experiment_ids=None, labels=None, users=None, states=None, name=None, project_id=None, sort_by=None, order_by=None)
  list_resource_pools()
  ResourcePool TrialSortBy ExperimentSortBy
  get_trial(trial_id)
  get_checkpoint(uuid)
  iter_trials_metrics(trial_ids, group)
  stream_trials_metrics(trial_ids, group)
  stream_trials_training_metrics(trial_ids)
  stream_trials_validation_metrics(trial_ids)
  get_session_username()
  whoami()
  create_user(username, admin, password=None, remote=False)
  get_user_by_id(user_id)
  get_user_by_name(user_name)
  list_users(active=None)
  User.rename(self, new_username)
  User.activate(self)
  User.deactivate(self)
  User.change_display_name(self, display_name)
  User.change_password(self, new_password)
  User.link_with_agent(self, agent_uid=None, agent_gid=None, agent_user=None, agent_group=None)
  CheckpointOrderBy ExperimentOrderBy ModelOrderBy TrialOrderBy TrainingMetrics ValidationMetrics
  ModelSortBy ModelVersion Model
  create_model(name, description='', metadata=None, labels=None, workspace_name=None)
  get_model(identifier)
  get_model_by_id(identifier)
  list_models(sort_by=ModelSortBy.NAME, order_by=OrderBy.ASCENDING, name=None, description=None, model_id=None, workspace_names=None, workspace_ids=None)
  get_models(sort_by=ModelSortBy.NAME, order_by=OrderBy.ASCENDING, name=None, description=None, model_id=None, workspace_names=None, workspace_ids=None)
  get_model_labels()
  Model.get_version(self, version=-1)
  Model.list_versions(self, order_by=OrderBy.DESCENDING)
  Model.get_versions(self, order_by=OrderBy.DESCENDING)
  Model.register_version(self, checkpoint_uuid)
  Model.add_metadata(self, metadata)
  Model.remove_metadata(self, keys)
  Model.set_labels(self, labels)
  Model.set_description(self, description)
  Model.move_to_workspace(self, workspace_name)
  Model.archive(self)
  Model.unarchive(self)
  Model.delete(self)
  ModelVersion.set_name(self, name)
  ModelVersion.set_notes(self, notes)
  ModelVersion.delete(self)
  create_workspace(name)
  get_workspace(name)
  list_workspaces()
  delete_workspace(name)
  Workspace.delete_project(self, name)
  Workspace.create_project(self, name, description=None)
  Workspace.get_project(self, project_name)
  Workspace.list_projects(self)
  Workspace.list_pools(self)
  Workspace.reload(self)
  Project.list_experiments(self)
  Project.reload(self)
  Project.set_name(self, name)
  Project.set_description(self, description)
  Experiment.activate(self)
  Experiment.pause(self)
  Experiment.cancel(self)
  Experiment.kill(self)
  Experiment.archive(self)
  Experiment.unarchive(self)
  Experiment.delete(self)
  Experiment.reload(self)
  Experiment.set_name(self, name)
  Experiment.set_description(self, description)
  Experiment.set_notes(self, notes)
  Experiment.iter_trials(self, sort_by=None, order_by=None, limit=None)
  Experiment.add_label(self, label)
  Experiment.remove_label(self, label)
  Experiment.set_labels(self, labels)
  Experiment.move_to_project(self, workspace_name, project_name)
  Experiment.top_n_trials(self, limit, sort_by=None, smaller_is_better=None)
  Experiment.get_config(self)
  Experiment.list_trials(self, sort_by=None, order_by=None)
  Experiment.get_trials(self, sort_by=None, order_by=None)
  Experiment.await_first_trial(self, interval=0.1)
  Experiment.wait(self, interval=5.0)
  Experiment.list_checkpoints(self, sort_by=None, order_by=None, max_results=None)
  Experiment.top_checkpoint(self, sort_by=None, smaller_is_better=None)
  Experiment.top_n_checkpoints(self, limit, sort_by=None, smaller_is_better=None)
  Experiment.download_code(self, output_dir=None)
  Trial.kill(self)
  Trial.reload(self)
  Trial.logs(self, follow=False, *, head=None, tail=None, container_ids=None, rank_ids=None, stdtypes=None, min_level=None)
  Trial.iter_logs(self, follow=False, *, head=None, tail=None, container_ids=None, rank_ids=None, stdtypes=None, min_level=None)
  Trial.iter_metrics(self, group=None)
  Trial.stream_training_metrics(self)
  Trial.stream_validation_metrics(self)
  Trial.list_checkpoints(self, sort_by=None, order_by=None, max_results=None)
  Trial.get_checkpoints(self, sort_by=None, order_by=None, max_results=None)
  Trial.top_checkpoint(self, sort_by=None, smaller_is_better=None)
  Trial.select_checkpoint(self, latest=False, best=False, uuid=None, sort_by=None, smaller_is_better=None)
  Checkpoint.download(self, path=None, mode=DownloadMode.AUTO)
  Checkpoint.delete(self)
  Checkpoint.remove_files(self, globs)
  Checkpoint.get_metadata(self)
  Checkpoint.write_metadata_file(self, path)
  Checkpoint.add_metadata(self, metadata)
  Checkpoint.remove_metadata(self, keys)
  CheckpointSortBy{UUID='SORT_BY_UUID', TRIAL_ID='SORT_BY_TRIAL_ID', BATCH_NUMBER='SORT_BY_BATCH_NUMBER', END_TIME='SORT_BY_END_TIME', STATE='SORT_BY_STATE', SEARCHER_METRIC='SORT_BY_SEARCHER_METRIC'}
  OrderBy{ASCENDING='ORDER_BY_ASC', DESCENDING='ORDER_BY_DESC'}
  DownloadMode{DIRECT='direct', MASTER='master', AUTO='auto'}
determined.experimental.core_v2
  DistributedContext PreemptMode TensorboardMode train distributed preempt checkpoint searcher info
  DefaultConfig(name=None, hparams=None, data=None, description=None, labels=None, checkpoint_storage=None, searcher=None)
  UnmanagedConfig(workspace=None, project=None, external_experiment_id=None, external_trial_id=None)
  init(*, defaults=None, unmanaged=None, client=None, distributed=None, checkpoint_storage=None, preempt_mode=PreemptMode.WorkersAskChief, tensorboard_mode=TensorboardMode.AUTO)
  init_context(*, defaults=None, unmanaged=None, client=None, distributed=None, checkpoint_storage=None, preempt_mode=PreemptMode.WorkersAskChief, tensorboard_mode=TensorboardMode.AUTO)
  close()
  url_reverse_webui_exp_view()
determined.searcher
  Operation LocalSearchRunner RemoteSearchRunner
  ExitedReason{ERRORED='ERRORED', USER_CANCELED='USER_CANCELED', INVALID_HP='INVALID_HP'}
  Create(request_id, hparams, checkpoint=None)
  ValidateAfter(request_id, length)
  Close(request_id, reason=None)
  Progress(progress)
  Shutdown(cancel=False, failure=False)
  SearcherState()
  SearcherState.to_dict(self)
  SearcherState.from_dict(self, d)
  SearchMethod.initial_operations(self, searcher_state)
  SearchMethod.on_trial_created(self, searcher_state, request_id)
  SearchMethod.on_validation_completed(self, searcher_state, request_id, metric, train_length)
  SearchMethod.on_trial_closed(self, searcher_state, request_id)
  SearchMethod.on_trial_exited_early(self, searcher_state, request_id, exited_reason)
  SearchMethod.progress(self, searcher_state)
  SearchMethod.save_method_state(self, path)
  SearchMethod.load_method_state(self, path)
  SearchMethod.save(self, searcher_state, path, *, experiment_id)
  SearchMethod.load(self, path)
  SearchRunner(search_method)
  SearchRunner.run_experiment(self, experiment_id, session, prior_operations, sleep_time=1.0)
  SearchRunner.get_events(self, session, experiment_id)
  SearchRunner.post_operations(self, session, experiment_id, event, operations)
  SearchRunner.save_state(self, experiment_id, operations)
  LocalSearchRunner(search_method, searcher_dir=None)
  LocalSearchRunner.run(self, exp_config, model_dir=None, includes=None)
  LocalSearchRunner.load_state(self, experiment_id)
  RemoteSearchRunner(search_method, context)
  RemoteSearchRunner.run(self, exp_config, model_dir=None, includes=None)
  RemoteSearchRunner.load_state(self, storage_id)
determined.transformers
  DetCallback(core_context, args, filter_metrics=None, user_data=None)
determined.lightning.experimental
  DetLogger(*, defaults=None, unmanaged=None, client=None)
determined.pytorch.deepspeed
  ModelParallelUnit(data_parallel_rank, data_parallel_world_size, should_report_metrics, should_build_data_loader)
  make_data_parallel_mpu(dist_context)
  make_deepspeed_mpu(topology)
  overwrite_deepspeed_config(base_ds_config, source_ds_dict)
determined.pytorch.experimental
  get_default_device(core_context)
  torch_batch_process(batch_processor_cls, dataset, batch_size=None, max_batches=None, checkpoint_interval=5, dataloader_kwargs=None, distributed_context=None)
  TorchBatchProcessor(context)
  TorchBatchProcessor.process_batch(self, batch, batch_idx)
  TorchBatchProcessor.on_checkpoint_start(self)
  TorchBatchProcessor.on_finish(self)
  TorchBatchProcessorContext.wrap_reducer TorchBatchProcessorContext.reset_reducers
  TorchBatchProcessorContext.get_hparams(self)
  TorchBatchProcessorContext.to_device(self, data, warned_types=None)
  TorchBatchProcessorContext.get_tensorboard_path(self)
  TorchBatchProcessorContext.prepare_model_for_inference(self, model)
  TorchBatchProcessorContext.upload_path(self)
  TorchBatchProcessorContext.report_metrics(self, group, steps_completed, metrics)
  TorchBatchProcessorContext.get_distributed_rank(self)
  TorchBatchProcessorContext.get_distributed_size(self)
determined.launch.torch_distributed
  main(argv)
determined.launch.horovod
  main(argv)
determined.launch.deepspeed
  main(argv)
determined.launch.wrap_rank
  main(argv)
determined.exec.harness
  main(spec)
"""


class Shown:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def shape(callee):
    """The parameters without annotations."""
    if isinstance(callee, type) and issubclass(callee, enum.Enum):
        return "{" + ", ".join(f"{m.name}={m.value!r}" for m in callee) + "}"
    parameters = []
    for p in inspect.signature(callee).parameters.values():
        default = Shown(f"{type(p.default).__name__}.{p.default.name}") if isinstance(p.default, enum.Enum) else p.default
        parameters.append(p.replace(annotation=p.empty, default=default))
    return str(inspect.Signature(parameters))


def entries():
    """(module, name, shape or None)"""
    module = ""
    for line in TABLE.strip().splitlines():
        text = line.strip()
        if not line.startswith(" "):
            module = text
        elif text[-1] in ")}":
            cut = min(i for i in (text.find("("), text.find("{")) if i > 0)
            yield module, text[:cut], text[cut:]
        else:
            yield from ((module, name, None) for name in text.split())


class Names(unittest.TestCase):
    def test_table(self):
        for module, name, expected in entries():
            with self.subTest(f"{module}.{name}"):
                found = importlib.import_module(module)
                for part in name.split("."):
                    found = getattr(found, part)
                if expected is not None:
                    self.assertEqual(shape(found), expected)

    def test_all(self):
        """What a module exports is in the table, and the other way round."""
        table = {(m, n.split(".")[0]) for m, n, _ in entries()}
        for module in ("determined", "determined.pytorch", "determined.core", "determined.experimental", "determined.experimental.client",
                       "determined.experimental.core_v2", "determined.searcher", "determined.transformers", "determined.lightning.experimental", "determined.pytorch.experimental"):
            exported = importlib.import_module(module).__all__
            self.assertEqual([n for n in exported if (module, n) not in table], [], module)
            self.assertEqual(sorted(set(exported)), sorted(exported), module)

    def test_hints(self):
        """Every parameter and result of the public interface says its type."""
        for module, name, expected in entries():
            if expected is None or expected[0] == "{" or module.startswith("determined.experimental.client"):
                continue
            found = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
            found = found.__init__ if isinstance(found, type) else found
            with self.subTest(f"{module}.{name}"):
                parameters = [p for p in inspect.signature(found).parameters.values() if p.name not in ("self", "args", "kwargs", "cls")]
                self.assertEqual([p.name for p in parameters if p.annotation is p.empty], [])
                self.assertIsNot(inspect.signature(found).return_annotation, inspect.Signature.empty)


class Facts(unittest.TestCase):
    """What the contract says of classes, values and texts."""

    def test_classes(self):
        import determined as det
        from determined import errors, pytorch

        self.assertFalse(issubclass(errors.InvalidExperimentException, Exception))
        for name in ("InvalidDataTypeException", "InvalidConfigurationException", "InvalidModelException"):
            self.assertTrue(issubclass(getattr(errors, name), errors.InvalidExperimentException))
        self.assertEqual(str(errors.InternalException("x")), "Internal error: x. Please reach out to the Determined AI team for help.")
        self.assertTrue(issubclass(pytorch.PyTorchTrial, det.LegacyTrial))
        self.assertFalse(issubclass(pytorch.PyTorchTrialContext, det.TrialContext))
        self.assertIs(pytorch.PyTorchTrial.trial_context_class, pytorch.PyTorchTrialContext)
        self.assertTrue(issubclass(pytorch.Batch, pytorch.TrainUnit) and issubclass(pytorch.Epoch, pytorch.TrainUnit))
        self.assertIsInstance(det.InvalidHP("x").msg, str)
        self.assertRaises(TypeError, det.InvalidHP, 7)
        self.assertEqual(det.LOG_FORMAT, "%(levelname)s: [%(process)s] %(name)s: %(message)s")
        self.assertEqual(errors.InvalidHP, det.InvalidHP)

    def test_pickled(self):
        """Exceptions and units cross process boundaries."""
        from determined import errors, pytorch

        for value in (errors.InternalException("x"), errors.InvalidHP("y"), pytorch.Batch(3), pytorch.Reducer.AVG):
            self.assertEqual(repr(pickle.loads(pickle.dumps(value))), repr(value))

    def test_missing(self):
        import determined as det
        from determined.experimental import client

        self.assertRaises(AttributeError, lambda: det.nothing)
        self.assertRaises(AttributeError, lambda: client.nothing)
        nowhere = client.Determined.__new__(client.Determined)
        self.assertRaisesRegex(AttributeError, "'Determined' object has no attribute 'nothing'", lambda: nowhere.nothing)

    def test_no_master(self):
        """The address that nothing listens at, and how to name another."""
        from determined.experimental import client

        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))  # and does not listen
            url = f"http://127.0.0.1:{s.getsockname()[1]}"
            with self.assertRaisesRegex(ConnectionError, f"{url} cannot be reached.*refused.*DET_MASTER"):
                client.Determined(master=url, user="admin", password="x")

    def test_units(self):
        from determined.pytorch import Batch, TrainUnit

        for value, n, due in ((2, 4, True), (2, 3, False), (2, 0, False), (0, 7, True), ({3}, 3, True), ({3}, 4, False)):
            self.assertEqual(Batch(value).should_stop(n), due, (value, n))
        self.assertEqual(TrainUnit._from_config({"records": 7}, 2).value, 3)
        self.assertRaises(ValueError, TrainUnit._from_values, batches=1, epochs=1)
        self.assertRaises(AssertionError, TrainUnit._from_values, records=1)

    def test_environment(self):
        """context.env and from_config() of 0.19."""
        from determined import pytorch
        from determined._legacy import EnvContext

        config = {"hyperparameters": {"lr": {"type": "log", "minval": -3, "maxval": -1, "base": 10}, "n": {"type": "int", "minval": 1, "maxval": 3},
                                      "global_batch_size": {"type": "const", "val": 8}, "deep": {"act": {"type": "categorical", "vals": ["a", "b"]}}},
                  "data": {"url": "x"}, "optimizations": {"aggregation_frequency": 2}, "resources": {"slots_per_trial": 4},
                  "reproducibility": {"experiment_seed": 5}}
        context = pytorch.PyTorchTrialContext.from_config(config)
        self.assertTrue(1e-3 <= context.get_hparam("lr") <= 0.1 and context.get_hparam("n") in (1, 2, 3))
        self.assertIn(context.get_hparam("deep")["act"], "ab")
        self.assertEqual((context.get_per_slot_batch_size(), context.get_data_config(), context.get_trial_seed()), (8, {"url": "x"}, 5))
        env = context.env
        self.assertIsInstance(env, EnvContext)
        self.assertEqual((env.hparams, env.on_cluster, env.experiment_config.slots_per_trial(), env.trial_seed), (context.get_hparams(), False, 4, 5))
        for name in ("latest_checkpoint", "steps_completed", "use_gpu", "container_gpus", "slot_ids", "debug", "det_trial_id", "det_experiment_id",
                     "det_agent_id", "det_cluster_id", "trial_run_id", "allocation_id", "managed_training", "test_mode"):
            getattr(env, name)

    def test_step_outside_of_training(self):
        """A trial in a notebook: every batch is an update."""
        from determined import pytorch
        from support import LineTrial

        for context in (pytorch.PyTorchTrialContext.from_config({}), pytorch.CheckpointLoadContext(hparams={})):
            trial, clipped = LineTrial(context), []
            before = trial.model.weight.item()
            trial.train_batch(next(iter(trial.build_training_data_loader())), 0, 0)
            self.assertNotEqual(trial.model.weight.item(), before)
            self.assertFalse(trial.model.weight.grad is not None and trial.model.weight.grad.any())
            context.step_optimizer(trial.optim, clip_grads=clipped.extend, auto_zero_grads=False)
            self.assertEqual(len(clipped), 2)


if __name__ == "__main__":
    unittest.main()
