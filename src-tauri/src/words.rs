//! The app's own words in each of its languages: the menu, its questions and the titles of windows. What the host writes, such as
//! errors and the event log, is in English.

use std::sync::OnceLock;
use tierbar_core::TierId;

/// A language of the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    English,
    German,
    French,
}

static LANGUAGE: OnceLock<Language> = OnceLock::new();

/// Has the app speak the first of these languages that it knows, such as `de-AT` or `fr_FR.UTF-8`. Call it at the start, before the
/// first word.
pub(crate) fn set_language(wanted: &[String]) {
    // A second call changes nothing.
    let _ = LANGUAGE.set(choose_language(wanted));
}

fn choose_language(wanted: &[String]) -> Language {
    let known = |tag: &String| match tag.split(['-', '_', '.']).next() {
        Some("en" | "C" | "POSIX") => Some(Language::English),
        Some("de") => Some(Language::German),
        Some("fr") => Some(Language::French),
        _ => None,
    };
    wanted.iter().find_map(known).unwrap_or(Language::English)
}

fn language() -> Language {
    LANGUAGE.get().copied().unwrap_or(Language::English)
}

/// Returns what is in the app's language of a text in English, German and French.
pub(crate) fn in_language([english, german, french]: [&'static str; 3]) -> &'static str {
    match language() {
        Language::English => english,
        Language::German => german,
        Language::French => french,
    }
}

/// Writes a figure such as `12.4` with the decimal mark of the app's language.
pub(crate) fn figure(text: &str) -> String {
    match language() {
        Language::English => text.to_owned(),
        Language::German | Language::French => text.replace('.', ","),
    }
}

/// Returns what the menu calls a tier: `Fast`, `Everyday` and `Deep` in the app's language, and others by their names.
pub(crate) fn tier(id: &TierId) -> String {
    match id.as_str() {
        "fast" => Word::Fast.into(),
        "primary" => Word::Everyday.into(),
        "heavy" => Word::Deep.into(),
        _ => id.title(),
    }
}

/// Makes an enum of texts, each in English, German and French.
macro_rules! words {
    ($(#[$doc:meta])* $words:ident { $($name:ident: $english:literal, $german:literal, $french:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $words { $($name),* }

        impl $words {
            #[cfg(test)]
            fn all() -> Vec<Self> {
                vec![$(Self::$name),*]
            }

            const fn texts(self) -> [&'static str; 3] {
                match self { $(Self::$name => [$english, $german, $french]),* }
            }

            /// Returns the text in the app's language.
            pub(crate) fn text(self) -> &'static str {
                $crate::words::in_language(self.texts())
            }
        }

        impl From<$words> for String {
            fn from(word: $words) -> Self {
                word.text().to_owned()
            }
        }
    };
}

words! {
    /// A text of the app. `{0}` and `{1}` stand for values.
    Word {
        Fast: "Fast", "Schnell", "Rapide";
        Everyday: "Everyday", "Alltag", "Quotidien";
        Deep: "Deep", "Gründlich", "Approfondi";

        Idle: "Tierbar: no model loaded", "Tierbar: kein Modell geladen", "Tierbar : aucun modèle chargé";
        Loading: "Tierbar: loading", "Tierbar: lädt", "Tierbar : chargement";
        Ready: "Tierbar: ready", "Tierbar: bereit", "Tierbar : prêt";
        Answering: "Tierbar: answering", "Tierbar: antwortet", "Tierbar : répond";
        NeedsAttention: "Tierbar: needs attention", "Tierbar: benötigt Aufmerksamkeit", "Tierbar : à vérifier";
        NotRunning: "Tierbar: not running", "Tierbar: läuft nicht", "Tierbar : arrêté";

        Starting: "Starting…", "Wird gestartet …", "Démarrage…";
        CouldNotStart: "Tierbar could not start: {0}", "Tierbar konnte nicht starten: {0}", "Tierbar n’a pas pu démarrer : {0}";
        CannotShow: "The menu cannot show Tierbar: {0}", "Das Menü kann Tierbar nicht anzeigen: {0}", "Le menu ne peut pas afficher Tierbar : {0}";
        Stopped:
            "Tierbar was stopped. The menu reconnects when Tierbar starts again. Choose Try Again to start it in this app.",
            "Tierbar wurde beendet. Das Menü verbindet sich, sobald Tierbar wieder startet. Wählen Sie „Erneut versuchen“, um es in dieser App zu starten.",
            "Tierbar a été arrêté. Le menu se reconnecte dès que Tierbar redémarre. Choisissez Réessayer pour le démarrer dans cette app.";

        Ram: "RAM {0} of {1} GB, {2} %", "RAM {0} von {1} GB, {2} %", "RAM {0} sur {1} Go, {2} %";
        RamHigh: "RAM {0} of {1} GB, {2} %, high memory pressure", "RAM {0} von {1} GB, {2} %, hoher Speicherdruck", "RAM {0} sur {1} Go, {2} %, pression élevée";
        RamCritical: "RAM {0} of {1} GB, {2} %, critical memory pressure", "RAM {0} von {1} GB, {2} %, kritischer Speicherdruck", "RAM {0} sur {1} Go, {2} %, pression critique";
        Swap: "Swap {0}", "Swap {0}", "Swap {0}";
        SwapGrowing: "Swap {0}, growing {1}/min", "Swap {0}, wächst um {1}/min", "Swap {0}, augmente de {1}/min";
        NoModelLoaded: "No model loaded", "Kein Modell geladen", "Aucun modèle chargé";
        OneModelLoaded: "1 model loaded", "1 Modell geladen", "1 modèle chargé";
        ModelsLoaded: "{0} models loaded", "{0} Modelle geladen", "{0} modèles chargés";
        Megabytes: "{0} MB", "{0} MB", "{0} Mo";
        Gigabytes: "{0} GB", "{0} GB", "{0} Go";

        Resume: "Resume", "Fortsetzen", "Reprendre";
        PauseAll: "Pause All", "Alle anhalten", "Tout suspendre";
        OpenChat: "Open Chat", "Chat öffnen", "Ouvrir la discussion";
        Models: "Models…", "Modelle …", "Modèles…";
        Monitor: "Monitor…", "Monitor …", "Moniteur…";
        Settings: "Settings…", "Einstellungen …", "Réglages…";
        CopyAddress: "Copy API Address", "API-Adresse kopieren", "Copier l’adresse de l’API";
        StartAtLogin: "Start at Login", "Bei der Anmeldung öffnen", "Ouvrir à l’ouverture de session";
        TryAgain: "Try Again", "Erneut versuchen", "Réessayer";
        OpenFolder: "Open Configuration Folder", "Konfigurationsordner öffnen", "Ouvrir le dossier de configuration";
        QuitTierbar: "Quit Tierbar", "Tierbar beenden", "Quitter Tierbar";

        KeepLoaded: "Keep Loaded", "Geladen halten", "Garder chargé";
        HomeTier: "Home Tier", "Standardstufe", "Niveau par défaut";
        UnloadWhenIdle: "Unload When Idle", "Bei Nichtgebrauch entladen", "Décharger en cas d’inactivité";
        AfterOneMinute: "After 1 Minute", "Nach 1 Minute", "Après 1 minute";
        AfterFiveMinutes: "After 5 Minutes", "Nach 5 Minuten", "Après 5 minutes";
        AfterTenMinutes: "After 10 Minutes", "Nach 10 Minuten", "Après 10 minutes";
        AfterThirtyMinutes: "After 30 Minutes", "Nach 30 Minuten", "Après 30 minutes";
        AfterOneHour: "After 1 Hour", "Nach 1 Stunde", "Après 1 heure";
        AfterFourHours: "After 4 Hours", "Nach 4 Stunden", "Après 4 heures";
        Never: "Never", "Nie", "Jamais";
        ChooseModel: "Choose a Model…", "Modell auswählen …", "Choisir un modèle…";
        Load: "Load", "Laden", "Charger";
        Unload: "Unload", "Entladen", "Décharger";
        UnloadNow: "Unload Now", "Jetzt entladen", "Décharger maintenant";
        NoModelChosen: "no model chosen", "kein Modell gewählt", "aucun modèle choisi";
        ModelNotLoaded: "{0}, not loaded", "{0}, nicht geladen", "{0}, non chargé";
        ModelReady: "{0}, ready", "{0}, bereit", "{0}, prêt";
        ModelReadyIn: "{0}, ready, {1}", "{0}, bereit, {1}", "{0}, prêt, {1}";
        ModelLoading: "loading {0}…", "lädt {0} …", "chargement de {0}…";
        ModelLoadingTo: "loading {0}, {1} %", "lädt {0}, {1} %", "chargement de {0}, {1} %";
        ModelAnswering: "{0}, answering", "{0}, antwortet", "{0}, répond";
        ModelAnsweringIn: "{0}, answering, {1}", "{0}, antwortet, {1}", "{0}, répond, {1}";
        ModelUnloading: "unloading {0}", "entlädt {0}", "déchargement de {0}";
        ModelFailed: "{0}, failed", "{0}, fehlgeschlagen", "{0}, échec";

        Downloading: "Downloading {0}…{1}", "Lädt {0} …{1}", "Téléchargement de {0}…{1}";
        Verifying: "Verifying {0}…{1}", "Überprüft {0} …{1}", "Vérification de {0}…{1}";
        Queued: "queued", "in der Warteschlange", "en file d’attente";
        Waiting: "waiting", "wartet", "en attente";
        More: "{0} more", "{0} weitere", "{0} autres";
        MegabytesPerSecond: "{0} MB/s", "{0} MB/s", "{0} Mo/s";
        KilobytesPerSecond: "{0} kB/s", "{0} kB/s", "{0} ko/s";
        LessThanAMinuteLeft: "< 1 min left", "noch < 1 Min.", "< 1 min restante";
        MinutesLeft: "{0} min left", "noch {0} Min.", "{0} min restantes";
        HoursLeft: "{0} h left", "noch {0} Std.", "{0} h restantes";

        QuitQuestion: "Quit Tierbar?", "Tierbar beenden?", "Quitter Tierbar ?";
        QuitUnseen:
            "This desktop has no system tray, so a running Tierbar cannot be seen. If you keep it running, open Tierbar again to show its window.",
            "Dieser Desktop hat keinen Infobereich, ein laufendes Tierbar ist daher nicht zu sehen. Wenn Sie es weiterlaufen lassen, öffnen Sie Tierbar erneut, um sein Fenster zu zeigen.",
            "Ce bureau n’a pas de zone de notification : un Tierbar en cours d’exécution n’est donc pas visible. Si vous le laissez fonctionner, rouvrez Tierbar pour afficher sa fenêtre.";
        QuitWhileAnswering: "Quit while {0} answers?", "Beenden, während {0} antwortet?", "Quitter pendant que {0} répond ?";
        QuitCutsOff:
            "The answer stops where it is. Downloads resume when you open Tierbar again.",
            "Die Antwort endet an dieser Stelle. Downloads werden fortgesetzt, wenn Sie Tierbar wieder öffnen.",
            "La réponse s’arrête là où elle en est. Les téléchargements reprennent lorsque vous rouvrez Tierbar.";
        Quit: "Quit", "Beenden", "Quitter";
        KeepRunning: "Keep Running", "Weiterlaufen lassen", "Laisser fonctionner";
        Cancel: "Cancel", "Abbrechen", "Annuler";

        SettingsWindow: "Tierbar Settings", "Tierbar – Einstellungen", "Réglages de Tierbar";
        OverviewWindow: "Tierbar Overview", "Tierbar – Übersicht", "Aperçu de Tierbar";
    }
}

impl Word {
    /// Returns the text with these values.
    pub(crate) fn with(self, values: &[&str]) -> String {
        fill(self.text(), values)
    }
}

fn fill(text: &str, values: &[&str]) -> String {
    let mut filled = text.to_owned();
    for (at, value) in values.iter().enumerate() {
        filled = filled.replace(&format!("{{{at}}}"), value);
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::{Language, Word, choose_language, fill};

    #[test]
    fn the_first_known_language_is_spoken() {
        let spoken = |tags: &[&str]| {
            let tags: Vec<_> = tags.iter().map(|tag| (*tag).to_owned()).collect();
            choose_language(&tags)
        };
        assert_eq!(spoken(&["de-AT", "en-US"]), Language::German);
        assert_eq!(spoken(&["nl-NL", "fr-CA"]), Language::French);
        assert_eq!(spoken(&["fr_FR.UTF-8"]), Language::French);
        assert_eq!(spoken(&["C.UTF-8", "de_DE"]), Language::English);
        assert_eq!(spoken(&["ja"]), Language::English);
        assert_eq!(spoken(&[]), Language::English);
    }

    #[test]
    fn each_translation_has_the_values_of_the_english() {
        for word in Word::all() {
            let [english, others @ ..] = word.texts();
            for value in ["{0}", "{1}", "{2}"] {
                for other in others {
                    assert_eq!(
                        other.contains(value),
                        english.contains(value),
                        "{word:?}: {value} in {other:?}"
                    );
                }
            }
            assert!(word.texts().iter().all(|text| !text.is_empty()), "{word:?}");
        }
    }

    #[test]
    fn values_go_where_the_language_has_them() {
        assert_eq!(fill("{1} von {0}", &["a", "b"]), "b von a");
        assert_eq!(Word::ModelsLoaded.with(&["3"]), "3 models loaded");
    }
}
