"""The private names: all there, and each one's absence said in a sentence."""

import importlib

import tensorflow as tf
from telling import facts, tell

from pytest_tfdevice.capture import private, private_executor, private_memory


def probe():
    return [*private.probe(), *private_executor.probe(), *private_memory.probe()]


facts["missing"] = probe()
CONTEXT = "tensorflow.python.eager.context"
EXECUTOR = "tensorflow.python.eager.executor"
EXECUTE = "tensorflow.python.eager.execute"
SESSION = "tensorflow.python.client.session"
BUFFERS = "tensorflow.python.client.pywrap_tf_session"
WRAPPER = "tensorflow.python.pywrap_tfe"
OPS = "tensorflow.python.framework.ops"
NAMES = [
    ("tensorflow.python.framework.kernels", "get_all_registered_kernels"),
    (CONTEXT, "context"),
    (CONTEXT, "context_safe"),
    (CONTEXT, "Context.ensure_initialized"),
    (CONTEXT, "Context.enable_graph_collection"),
    (CONTEXT, "Context.disable_graph_collection"),
    (CONTEXT, "Context.export_run_metadata"),
    (CONTEXT, "Context.clear_kernel_cache"),
    (CONTEXT, "Context.get_function_def"),
    (CONTEXT, "Context.device_name"),
    (CONTEXT, "Context.config"),
    (CONTEXT, "Context.op_callbacks"),
    (CONTEXT, "eager_mode"),
    (CONTEXT, "executor_scope"),
    (CONTEXT, "Context.is_async"),
    (EXECUTOR, "new_executor"),
    (EXECUTOR, "Executor.is_async"),
    (EXECUTOR, "Executor.wait"),
    (EXECUTE, "quick_execute"),
    (EXECUTE, "execute_with_callbacks"),
    ("tensorflow.python.ops.script_ops", "FuncRegistry"),
    (OPS, "raise_from_not_ok_status"),
    ("tensorflow.python.autograph.impl.api", "_TRANSPILER"),
    ("tensorflow.python.framework.func_graph", "FuncGraph"),
    ("tensorflow.python.framework.op_def_registry", "get"),
    (SESSION, "BaseSession"),
    (SESSION, "BaseSession._call_tf_sessionrun"),
    (SESSION, "BaseSession._call_tf_sessionprun"),
    (SESSION, "BaseSession._make_callable_from_options"),
    (SESSION, "BaseSession._Callable"),
    (BUFFERS, "TF_NewBufferFromString"),
    (BUFFERS, "TF_OperationName"),
    (BUFFERS, "TF_DeviceListMemoryBytes"),
    (WRAPPER, "TFE_ContextListDevices"),
    (WRAPPER, "TF_DeviceListCount"),
    (WRAPPER, "TF_DeviceListName"),
    (WRAPPER, "TFE_GetMemoryInfo"),
    (WRAPPER, "TFE_ResetMemoryStats"),
    (WRAPPER, "TFE_NewContextOptions"),
    (WRAPPER, "TFE_ContextOptionsSetConfig"),
    (WRAPPER, "TFE_NewContext"),
    (WRAPPER, "TFE_DeleteContextOptions"),
]


def without(module, path):
    """What the probe says while a name is gone."""
    owner = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    kept = owner.__dict__[name]
    delattr(owner, name)
    try:
        return probe()
    finally:
        setattr(owner, name, kept)


facts["names"] = {f"{module}.{path}": without(module, path) for module, path in NAMES}
facts["missing after"] = probe()
facts["version"] = tf.__version__
facts["cuda"] = tf.test.is_built_with_cuda()


def half_open(module, path):
    """A window that can't be opened for want of a name: the error, and what is left behind."""
    from pytest_tfdevice import watch

    owner = importlib.import_module(module)
    kept = getattr(owner, path)
    session = dict(vars(importlib.import_module(SESSION).BaseSession))
    delattr(owner, path)
    message = ""
    try:
        with watch():
            pass
    except private.MissingPrivate as error:
        message = str(error)
    setattr(owner, path, kept)
    left = {
        "executor": private.executes_with_callbacks(),
        "session": session != dict(vars(importlib.import_module(SESSION).BaseSession)),
        "collection": "export_run_metadata" in vars(private.eager_context()),
    }
    with watch() as w:
        tf.sin(1.0)
    return {"message": message, "left": left, "next": [p.type for p in w.record.placements]}


facts["half open"] = half_open("tensorflow.python.ops.script_ops", "FuncRegistry")


def kernels(op):
    from tensorflow.python.framework import kernels as registry

    return [
        [
            k.device_type,
            list(k.host_memory_arg),
            [list(c.allowed_values.list.type) for c in k.constraint],
        ]
        for k in registry.get_registered_kernels_for_op(op).kernel
    ]


facts["gpu kernels of Conv2D"] = sum(k[0] == "GPU" for k in kernels("Conv2D"))
facts["AddV2 int32"] = [
    k[1] for k in kernels("AddV2") if k[0] in ("GPU", "DEFAULT") and [3] in k[2]
]
tell()
