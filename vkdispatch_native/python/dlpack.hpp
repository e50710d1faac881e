// DLPack tensors in Python capsules, and references to Python objects that any thread may drop.
#pragma once

#include <Python.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace vkd {

// Set while the process ends: other threads can no longer take Python's lock.
inline std::atomic<bool> process_is_ending{false};

// ---- references

// References that were dropped by threads without Python's lock.
class DroppedReferences {
 public:
  static DroppedReferences& all() {
    static auto& references = *new DroppedReferences;  // never destroyed: devices may outlive everything else
    return references;
  }

  void add(PyObject* object) noexcept {
    if (process_is_ending.load()) {
      return;  // what it holds ends with the process
    }
    bool first = false;
    {
      std::lock_guard lock(mutex_);
      try {
        objects_.push_back(object);
      } catch (const std::bad_alloc&) {
        return;  // it is never freed
      }
      first = objects_.size() == 1;
    }
    count_.fetch_add(1);
    if (first && Py_IsInitialized() != 0) {
      Py_AddPendingCall(&release_pending, nullptr);  // if it fails, a later call of release() finds them
    }
  }

  // Call it with Python's lock. Fast if there are none.
  void release() {
    if (count_.load(std::memory_order_relaxed) == 0) {
      return;
    }
    std::vector<PyObject*> objects;
    {
      std::lock_guard lock(mutex_);
      objects.swap(objects_);
    }
    count_.fetch_sub(static_cast<int>(objects.size()));
    for (PyObject* object : objects) {
      Py_DECREF(object);
    }
  }

 private:
  static int release_pending(void*) {
    all().release();
    return 0;
  }

  std::mutex mutex_;
  std::vector<PyObject*> objects_;
  std::atomic<int> count_{0};
};

// Returns a new reference to an object, which any thread may drop. Call it with Python's lock.
inline std::shared_ptr<void> keep_object(PyObject* object) {
  Py_INCREF(object);
  return {object, [](void* kept) { DroppedReferences::all().add(static_cast<PyObject*>(kept)); }};
}

inline void release_dropped_references() {
  DroppedReferences::all().release();
}

// ---- DLPack, version 1: https://dmlc.github.io/dlpack/latest/c_api.html

namespace dlpack {

constexpr uint32_t kMajor = 1;
constexpr uint32_t kMinor = 1;

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t axis_count;
  DataType type;
  int64_t* shape;
  int64_t* strides;  // in elements; null: in C order
  uint64_t byte_offset;
};

// Without a version, as in capsules named "dltensor".
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

// As in capsules named "dltensor_versioned".
struct ManagedVersioned {
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  Tensor tensor;
};

inline const char* capsule_name(bool versioned) noexcept {
  return versioned ? "dltensor_versioned" : "dltensor";
}
inline const char* used_name(bool versioned) noexcept {
  return versioned ? "used_dltensor_versioned" : "used_dltensor";
}

// An exported tensor, and what it points to.
template <typename AnyManaged>
struct Exported {
  AnyManaged managed{};
  std::vector<int64_t> lengths;  // shape, then strides
  PyObject* owner = nullptr;
};

// The deleter of our tensors: called once, by any thread, with or without Python's lock.
template <typename AnyManaged>
void delete_exported(AnyManaged* managed) {
  std::unique_ptr<Exported<AnyManaged>> exported(static_cast<Exported<AnyManaged>*>(managed->context));
  if (Py_IsInitialized() == 0) {
    return;
  }
  if (process_is_ending.load() && PyGILState_GetThisThreadState() == nullptr) {
    return;
  }
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);  // a consumer may be handling an exception
  Py_DECREF(exported->owner);
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(state);
}

// Of capsules that nobody took: a consumer renames what it takes.
template <typename AnyManaged>
void delete_capsule(PyObject* capsule) {
  const char* name = capsule_name(std::is_same_v<AnyManaged, ManagedVersioned>);
  if (PyCapsule_IsValid(capsule, name) != 0) {
    auto* managed = static_cast<AnyManaged*>(PyCapsule_GetPointer(capsule, name));
    managed->deleter(managed);
  }
}

template <typename AnyManaged>
PyObject* make_capsule_of(PyObject* owner, const Tensor& tensor, std::vector<int64_t> lengths,
                          uint64_t flags) {
  constexpr bool kVersioned = std::is_same_v<AnyManaged, ManagedVersioned>;
  auto exported = std::make_unique<Exported<AnyManaged>>();
  exported->lengths = std::move(lengths);
  exported->lengths.reserve(1);  // never a null pointer
  AnyManaged& managed = exported->managed;
  managed.tensor = tensor;
  managed.tensor.shape = exported->lengths.data();
  managed.tensor.strides = exported->lengths.data() + tensor.axis_count;
  managed.context = exported.get();
  managed.deleter = &delete_exported<AnyManaged>;
  if constexpr (kVersioned) {
    managed.major = kMajor;
    managed.minor = kMinor;
    managed.flags = flags;
  }
  PyObject* capsule = PyCapsule_New(&managed, capsule_name(kVersioned), &delete_capsule<AnyManaged>);
  if (capsule != nullptr) {
    Py_INCREF(owner);
    exported->owner = owner;
    exported.release();  // the deleter destroys it
  }
  return capsule;
}

// Returns a new capsule, which holds a reference to `owner` until the deleter is called; null with an
// exception set. `lengths`: shape, then strides.
inline PyObject* make_capsule(PyObject* owner, const Tensor& tensor, std::vector<int64_t> lengths,
                              bool versioned, uint64_t flags) {
  return versioned ? make_capsule_of<ManagedVersioned>(owner, tensor, std::move(lengths), flags)
                   : make_capsule_of<Managed>(owner, tensor, std::move(lengths), flags);
}

// As many as NumPy's arrays have.
constexpr int32_t kMostAxes = 64;

// Returns what no tensor can have, or null. Nothing but the tensor itself and its lengths is read.
inline const char* find_fault(const Tensor& tensor) noexcept {
  if (tensor.axis_count < 0 || tensor.axis_count > kMostAxes) {
    return "the number of axes is not from 0 to 64";
  }
  if (tensor.axis_count > 0 && tensor.shape == nullptr) {
    return "it has axes and no shape";
  }
  if (tensor.type.bits == 0 || tensor.type.lanes == 0) {
    return "its elements have no bits or no lanes";
  }
  const int64_t item_size = (int64_t{tensor.type.bits} * tensor.type.lanes + 7) / 8;
  int64_t bytes = item_size;          // of the elements, if no axis were empty
  int64_t low = 0, high = item_size;  // of the first and after the last one, from the first in order
  bool empty = false, overflows = false;
  for (int32_t axis = 0; axis < tensor.axis_count; ++axis) {
    const int64_t length = tensor.shape[axis];
    if (length < 0) {
      return "its shape has a negative length";
    }
    empty = empty || length == 0;
    overflows = __builtin_mul_overflow(bytes, std::max<int64_t>(length, 1), &bytes) || overflows;
    if (length > 1 && tensor.strides != nullptr) {
      int64_t reach = 0;
      overflows = __builtin_mul_overflow(length - 1, tensor.strides[axis], &reach) || overflows;
      overflows = __builtin_mul_overflow(reach, item_size, &reach) || overflows;
      int64_t& end = reach < 0 ? low : high;
      overflows = __builtin_add_overflow(end, reach, &end) || overflows;
    }
  }
  if (overflows) {
    return "its shape or strides reach beyond any memory";
  }
  if (empty) {
    return nullptr;
  }
  if (tensor.data == nullptr) {
    return "it has no memory";
  }
  if (tensor.strides == nullptr) {
    high = bytes;
  }
  const auto data = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(tensor.data));
  uint64_t first = 0, end = 0;
  if (__builtin_add_overflow(data, tensor.byte_offset, &first) ||
      first < uint64_t{0} - static_cast<uint64_t>(low) ||
      __builtin_add_overflow(first, static_cast<uint64_t>(high), &end)) {
    return "its address, offset and strides reach beyond any memory";
  }
  return nullptr;
}

// A tensor taken out of a capsule. The owner calls release() once, with Python's lock.
class Taken {
 public:
  // Takes the tensor and renames the capsule. Returns false if it has none, or it was taken before.
  bool take(PyObject* capsule) {
    for (const bool versioned : {true, false}) {
      const char* name = capsule_name(versioned);
      if (PyCapsule_IsValid(capsule, name) != 0) {
        managed_ = PyCapsule_GetPointer(capsule, name);
        versioned_ = versioned;
        if (PyCapsule_SetName(capsule, used_name(versioned)) != 0) {
          managed_ = nullptr;
        }
        return managed_ != nullptr;
      }
    }
    return false;
  }
  // Of an unknown major version nothing but the deleter may be used.
  bool known() const noexcept { return !versioned_ || as_versioned().major == kMajor; }
  bool versioned() const noexcept { return versioned_; }
  uint32_t major() const noexcept { return versioned_ ? as_versioned().major : 0; }
  uint32_t minor() const noexcept { return versioned_ ? as_versioned().minor : 0; }
  uint64_t flags() const noexcept { return versioned_ ? as_versioned().flags : 0; }
  const Tensor& tensor() const noexcept {
    return versioned_ ? as_versioned().tensor : static_cast<Managed*>(managed_)->tensor;
  }
  bool empty() const noexcept { return managed_ == nullptr; }
  void release() {
    void* managed = std::exchange(managed_, nullptr);
    if (managed == nullptr) {
      return;
    }
    if (versioned_) {
      call_deleter(static_cast<ManagedVersioned*>(managed));
    } else {
      call_deleter(static_cast<Managed*>(managed));
    }
  }

 private:
  const ManagedVersioned& as_versioned() const noexcept { return *static_cast<ManagedVersioned*>(managed_); }
  template <typename AnyManaged>
  static void call_deleter(AnyManaged* managed) {
    if (managed->deleter != nullptr) {
      managed->deleter(managed);
    }
  }

  void* managed_ = nullptr;
  bool versioned_ = false;
};

}  // namespace dlpack
}  // namespace vkd
