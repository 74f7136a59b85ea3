//! Adds up what is known of inputs.
use super::key::Key;
use crate::engine::Collected;
use crate::engine::Group;

impl Collected {
    /// Changes the numbers of inputs. `new` must keep their order.
    pub(crate) fn renumber(&mut self, new: &dyn Fn(usize) -> usize) {
        for group in &mut self.groups {
            group.acc.renumber(new);
            for one in &mut group.inputs {
                one.input = new(one.input);
            }
            for (input, _) in &mut group.indexed {
                *input = new(*input);
            }
        }
        for members in self.generations.origins.values_mut() {
            members.renumber(new);
        }
        for members in self.report.families.values_mut() {
            members.renumber(new);
        }
        self.report.log.renumber(new);
    }

    /// Adds the sum of other inputs. The inputs of both must have been numbered together.
    pub(crate) fn absorb(&mut self, other: Collected, key: &Key) {
        for group in other.groups {
            match self.groups.iter_mut().find(|mine| mine.ids == group.ids) {
                Some(mine) => mine.absorb(group, false),
                None => self.groups.push(group),
            }
        }
        self.generations.absorb(other.generations);
        for (group, sample) in other.traces {
            self.traces
                .entry(group)
                .or_default()
                .absorb(sample, key.traces);
        }
        self.report.absorb(other.report);
        self.report.log.settle();
    }

    /// The groups in the order in which parts hold them.
    pub(crate) fn sorted_groups(&self) -> Vec<&Group> {
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by(|a, b| a.ids.cmp(&b.ids));
        groups
    }
}
