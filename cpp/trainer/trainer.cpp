// Trains one member of a stack of small dense networks. Compiled once per instruction set, in its
// own namespace; no functions of the standard library here, for the reason given in isotone.hpp.
#include "trainer/trainer.hpp"

#include "trainer/adam.hpp"
#include "trainer/member.hpp"

namespace isotone::ISOTONE_ISA {
namespace {

template <class T>
double train(const TrainTask<T>& task) {
    Member<T> member(task.shape, task.constants, task.rows, Arena(task.workspace));
    const Visits all = {task.order, 0, task.n_visits};
    const AdamStep* step = task.adam.steps;
    const double mean_weight = member.total_weight(all) / static_cast<double>(all.n);
    double loss = 0, weight = 0;
    for (std::size_t i = 0; i < all.n; i += task.batch_size) {
        const Visits batch = all.part(i, task.batch_size);
        // The weight that so many rows have on average, not the one they have: dividing by the
        // latter would make heavy rows count less than their weight.
        const double total = mean_weight * static_cast<double>(batch.n);
        member.set_parameters(task.parameters);
        loss += member.differentiate(batch, total) * total;
        weight += total;
        update(task, *step, member.gradient(), task.shape.ranges);
        if (task.shape.learns_lipschitz) update_lipschitz(task, *step, member.gradient());
        ++step;
    }
    return loss / weight;
}

template <class T>
double evaluate(const EvaluateTask<T>& task) {
    Member<T> member(task.shape, task.constants, task.rows, Arena(task.workspace));
    const Visits all = {nullptr, 0, task.rows.n};
    const double total = member.total_weight(all);
    member.set_parameters(task.parameters);
    if (task.predictions) member.predict(all, task.predictions);
    if (!task.rows.y) return 0;
    if (!task.gradient) return member.evaluate(all, total);
    const double loss = member.differentiate(all, total);
    __builtin_memcpy(task.gradient, member.gradient(), task.shape.n_parameters() * sizeof(T));
    // A step leaves out what is in no range, and whatever its gradient is.
    for (std::size_t i = 0; task.shape.mask && i < task.shape.n_weights; ++i)
        if (!task.shape.mask[i]) task.gradient[i] = 0;
    return loss;
}

}  // namespace

const TrainerKernels<float> trainer_float = {workspace_bytes<float>, train<float>,
                                             evaluate<float>};
const TrainerKernels<double> trainer_double = {workspace_bytes<double>, train<double>,
                                               evaluate<double>};

}  // namespace isotone::ISOTONE_ISA
